//! The chat example, as people meet it: its page in a real browser.

mod webdriver;

use crate::process::{self, Process};
use webdriver::Browser;

/// What Enter and Tab are called in WebDriver's keys.
const ENTER: &str = "\u{E007}";
const TAB: &str = "\u{E004}";

/// Starts the chat example on a free port and answers its address.
fn chat() -> (Process, String) {
    let mut command = process::example("chat");
    command.env("BIND", "127.0.0.1").env("PORT", "0");
    let (server, line) = Process::start(command, "serving on ");
    let (_, url) = line
        .split_once("serving on ")
        .expect("the line that was waited for");
    (server, url.trim().to_owned())
}

/// Opens `room` in a tab of its own, as `name`.
fn enter(browser: &Browser, room: &str, name: &str) -> String {
    let tab = browser.new_tab();
    browser.switch_to(&tab);
    browser.go_to(room);
    browser.clear("#name");
    browser.type_into("#name", &format!("{name}{TAB}"));
    browser.wait_until("!document.querySelector('#send').disabled");
    tab
}

fn say(browser: &Browser, tab: &str, text: &str) {
    browser.switch_to(tab);
    browser.type_into("#text", &format!("{text}{ENTER}"));
}

fn sees(browser: &Browser, tab: &str, text: &str) {
    browser.switch_to(tab);
    browser.wait_until(&format!(
        "document.querySelector('#log').innerText.includes({text:?})"
    ));
}

#[test]
fn two_tabs_chat_in_one_room() {
    let (_server, url) = chat();
    let browser = Browser::start();
    let room = format!("{url}/rooms/lobby");
    let ada = enter(&browser, &room, "ada");
    let bob = enter(&browser, &room, "bob");

    say(&browser, &ada, "hello from ada");
    sees(&browser, &bob, "hello from ada");
    say(&browser, &bob, "hello from bob");
    sees(&browser, &ada, "hello from bob");
    for tab in [&ada, &bob] {
        browser.switch_to(tab);
        browser.wait_until("document.querySelector('#presence').innerText === '2 here'");
    }

    // Who comes later reads what was said, and who leaves is missed.
    browser.switch_to(&bob);
    browser.close_tab();
    sees(&browser, &ada, "hello from bob");
    browser.wait_until("document.querySelector('#presence').innerText === '1 here'");
    let eve = enter(&browser, &room, "eve");
    sees(&browser, &eve, "hello from ada");
}

#[test]
fn what_others_write_is_text_and_never_markup() {
    let (_server, url) = chat();
    let browser = Browser::start();
    let room = format!("{url}/rooms/lobby");
    let mallory = enter(&browser, &room, "<b>mallory</b>");
    let ada = enter(&browser, &room, "ada");

    let attack =
        "<img src=x onerror=document.title='pwned'><script>document.title='pwned'</script>";
    say(&browser, &mallory, attack);
    sees(&browser, &ada, attack);
    sees(&browser, &ada, "<b>mallory</b>");
    browser.wait_until("!document.querySelector('#log img, #log script, #log b b')");
    browser.wait_until("document.title === 'lobby · chat'");
}
