#!/usr/bin/env python3
"""The packaged extension in a real VS Code, whose server's pages headless Chromium shows.

Usage: workbench.py PPCC SERVER VSIX FOLDER; SERVER is the folder `lib/vscode` of code-server, FOLDER is scratch and holds the
pictures after.
"""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

ppcc, server, vsix, folder = (Path(argument).resolve() for argument in sys.argv[1:])
TEXT = """// ppcc: -D P=3 -D M=6
import "depths.pp";

// A pipeline.
schedule one(P: int = 2, M: int = 4) {
  ranks P; microbatches M; placement linear;
  on rank r {
    let w = min(depth(P, r), M);
    phase warmup   { repeat w     { F; } }
    phase steady   { repeat M - w { F; B; } }
    phase cooldown { repeat w     { B; } }
  }
}
"""
DEPTHS = """// How deep ranks are.
// The stages after rank r.
fn depth(P, r) = P - 1 - r;
"""


@contextlib.contextmanager
def workbench():
    """The server, with the extension, and its page with the folder."""
    work, data = folder / "schedules", folder / "data"
    shutil.rmtree(folder, ignore_errors=True)
    (work / ".vscode").mkdir(parents=True)
    (data / "data" / "Machine").mkdir(parents=True)
    (work / "one.pp").write_text(TEXT)
    (work / "depths.pp").write_text(DEPTHS)
    settings = {"ppcc.path": str(ppcc), "security.workspace.trust.enabled": False, "editor.minimap.enabled": False,
                "telemetry.telemetryLevel": "off", "workbench.startupEditor": "none", "files.autoSave": "off",
                "editor.wordBasedSuggestions": "off", "workbench.secondarySideBar.defaultVisibility": "hidden"}
    (data / "data" / "Machine" / "settings.json").write_text(json.dumps(settings))
    command = ["node", server / "out" / "server-main.js", "--accept-server-license-terms", "--server-data-dir", data]
    subprocess.run([*command, "--install-extension", vsix], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    log = open(folder / "server.log", "w", encoding="utf-8")
    run = subprocess.Popen([*command, "--host", "127.0.0.1", "--port", "0", "--without-connection-token", "--telemetry-level", "off"],
                           stdout=log, stderr=log, start_new_session=True)
    try:
        end = time.time() + 120
        while not (found := re.search(r"available at (http://\S+)", (folder / "server.log").read_text())):
            assert time.time() < end and run.poll() is None, (folder / "server.log").read_text()
            time.sleep(0.1)
        options = Options()
        options.binary_location = shutil.which("chromium")
        for flag in ["headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu", "window-size=1300,700"]:
            options.add_argument("--" + flag)
        driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            payload = quote(json.dumps([["openFile", f"vscode-remote://{found[1].split('/')[2]}{work}/one.pp"]]))
            driver.get(f"{found[1]}/?folder={work}&payload={payload}")
            yield driver, work
        except BaseException:
            driver.switch_to.default_content()
            driver.save_screenshot(str(folder / "failed.png"))
            raise
        finally:
            driver.quit()
    finally:
        os.killpg(run.pid, signal.SIGTERM)
        run.wait()


class Window:
    def __init__(self, driver):
        self.driver = driver

    def until(self, what, holds, limit=120):
        end = time.time() + limit
        while not (value := self.quietly(holds)):
            assert time.time() < end, f"{what}: not within {limit} s"
            time.sleep(0.05)
        return value

    @staticmethod
    def quietly(holds):
        """What is drawn anew meanwhile is asked again."""
        try:
            return holds()
        except Exception as error:  # Selenium has many names for elements that are gone.
            if isinstance(error, AssertionError):
                raise
            return None

    def texts(self, css):
        return [one.text for one in self.driver.find_elements(By.CSS_SELECTOR, css)]

    def sees(self, css, words):
        return self.until(f"{words!r} in {css}", lambda: next((one for one in self.texts(css) if re.search(words, one)), None))

    def keys(self, *keys):
        """`keys(Keys.CONTROL, "s")`: together."""
        chain = ActionChains(self.driver)
        for key in keys[:-1]:
            chain.key_down(key)
        chain.send_keys(keys[-1])
        for key in reversed(keys[:-1]):
            chain.key_up(key)
        chain.perform()

    def lines(self):
        lines = self.driver.find_elements(By.CSS_SELECTOR, ".part.editor .view-line")
        return [one.text.replace("\xa0", " ") for one in sorted(lines, key=lambda line: line.location["y"])]

    def text_has(self, words):
        return self.until(words, lambda: any(words in line for line in self.lines()))

    def go(self, line, column):
        self.keys(Keys.CONTROL, "g")
        self.until("the field for lines", lambda: self.driver.find_element(By.CSS_SELECTOR, ".quick-input-widget input").is_displayed())
        self.keys(f":{line}:{column}")
        self.keys(Keys.ENTER)
        self.at(line, column)

    def at(self, line, column):
        self.sees(".part.statusbar", rf"Ln {line}, Col {column}\b")

    def command(self, name):
        self.keys(Keys.F1)
        self.until("the field for commands", lambda: self.driver.find_element(By.CSS_SELECTOR, ".quick-input-widget input").is_displayed())
        self.keys(name)
        rows = lambda: self.driver.find_elements(By.CSS_SELECTOR, ".quick-input-list .monaco-list-row")
        row = self.until(name, lambda: next(one for one in rows() if one.text.split("\n")[0] == name))
        ActionChains(self.driver).click(row).perform()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # Nothing is left running.
    with workbench() as (driver, work):
        window = Window(driver)
        window.until("the question of trust", lambda: next(
            button for button in driver.find_elements(By.CSS_SELECTOR, ".dialog-buttons a") if "Yes" in button.text).click() or True)
        window.text_has("schedule one")
        window.until("colours", lambda: len({one.get_attribute("class") for one in driver.find_elements(
            By.CSS_SELECTOR, ".view-line span[class^=mtk]")}) > 3)
        print("the file is coloured")

        window.go(11, 1)
        window.keys("X")
        window.until("a squiggle", lambda: driver.find_elements(By.CSS_SELECTOR, ".squiggly-error"))
        window.keys(Keys.CONTROL, Keys.SHIFT, "m")
        print("errors come as one types:", window.sees(".markers-panel .monaco-list-row", r"E0\d+").replace("\n", " "))
        driver.save_screenshot(str(folder / "errors.png"))
        window.keys(Keys.CONTROL, Keys.SHIFT, "m")
        window.keys(Keys.CONTROL, "1")
        window.keys(Keys.BACKSPACE)
        window.until("no squiggle", lambda: not driver.find_elements(By.CSS_SELECTOR, ".squiggly-error"))
        print("and go")

        window.go(8, 9)
        window.command("Show or Focus Hover")
        print("hover:", window.sees(".monaco-hover", r"by rank: 2, 1, 0").replace("\n", " "))
        driver.save_screenshot(str(folder / "hover.png"))
        window.keys(Keys.ESCAPE)

        window.go(8, 20)
        window.keys(Keys.F12)
        window.sees(".part.editor .tab.active", "depths.pp")
        window.at(3, 4)
        print("definition: in another file")
        window.keys(Keys.F2)
        window.until("the field for names", lambda: driver.execute_script("return !!document.activeElement.closest('.rename-box')"))
        window.keys("after")
        window.keys(Keys.ENTER)
        window.text_has("fn after(P, r)")
        window.keys(Keys.CONTROL, "1")
        window.keys(Keys.CONTROL, Keys.PAGE_UP)
        window.sees(".part.editor .tab.active", "one.pp")
        window.text_has("min(after(P, r), M)")
        print("rename: in both files")

        window.go(10, 39)
        window.keys(" ")
        window.keys("pl")
        window.keys(Keys.BACKSPACE)
        window.keys(Keys.BACKSPACE)
        window.command("Trigger Suggest")
        window.sees(".suggest-widget .monaco-list-row", r"^w\b")
        print("completion:", ", ".join(text.split("\n")[0] for text in window.texts(".suggest-widget .monaco-list-row")[:6]))
        driver.save_screenshot(str(folder / "completion.png"))
        window.keys(Keys.ESCAPE)
        window.keys("      ")
        window.command("Format Document")
        window.until("formatted", lambda: any(line.strip() == "phase steady   { repeat M - w { F; B; } }" for line in window.lines()))
        print("formatting")
        window.command("File: Save All Files")
        window.until("a saved file", lambda: "after(P, r)" in (work / "one.pp").read_text() and "after" in (work / "depths.pp").read_text())

        window.command("ppcc: Show the Timeline Beside")
        window.sees(".part.editor .tab", "one.pp: timeline")
        enter = lambda: (driver.switch_to.default_content(), into(driver, "iframe.webview"), into(driver, "iframe#active-frame"))
        window.until("the panel", lambda: enter() and driver.find_element(By.ID, "params").text)
        ranks = "return [...document.querySelectorAll('iframe')].at(-1).contentWindow.ppcc.programs[0].ranks.length"
        window.until("the timeline", lambda: driver.execute_script(ranks) == 3)
        driver.switch_to.default_content()
        window.keys(Keys.CONTROL, "b")
        window.keys(Keys.CONTROL, "1")
        window.go(8, 9)
        window.command("Show or Focus Hover")
        window.sees(".monaco-hover", r"by rank: 2, 1, 0")
        driver.save_screenshot(str(folder / "timeline.png"))
        window.keys(Keys.ESCAPE)
        print("the timeline is in a panel")
        (work / "one.pp").write_text((work / "one.pp").read_text().replace("-D P=3", "-D P=3 -D M=7"))
        text = (work / "one.pp").read_text().replace("ranks P;", "ranks P + 1;").replace("after(P, r)", "P - r")
        (work / "one.pp").write_text(text)
        enter()
        window.until("the edit", lambda: driver.execute_script(ranks) == 4)
        print("and follows the file")
        slide = """const slider = document.querySelector('input[type=range]'); slider.value = 5;
                   slider.dispatchEvent(new Event('input')); return true;"""
        driver.execute_script(slide)
        window.until("the slider", lambda: driver.execute_script(ranks) == 6)
        driver.switch_to.default_content()
        driver.save_screenshot(str(folder / "slider.png"))
        print("and its sliders")


def into(driver, css):
    driver.switch_to.frame(driver.find_element(By.CSS_SELECTOR, css))
    return True


if __name__ == "__main__":
    main()
