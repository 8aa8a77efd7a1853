// Look at pages in a real browser: node look.mjs JOB.json, where JOB.json is
//   {"browser": path, "views": [{"page": path, "width": n, "scheme": "light"|"dark", "text": 1|2, "axe": bool, "shot": path?}]}
// Prints one JSON list: for each view what axe found, what is wider than the screen or cut off, and what was loaded.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const job = JSON.parse(readFileSync(process.argv[2], "utf8"));

// As for a reader who sets the text alone to twice its size.
function enlarge(times) {
  const sized = [...document.querySelectorAll("*")].map((one) => [one, parseFloat(getComputedStyle(one).fontSize)]);
  for (const [one, size] of sized) one.style.setProperty("font-size", `${size * times}px`, "important");
}

function tooWide() {
  const found = [];
  const screen = document.documentElement.clientWidth;
  const whole = document.documentElement.scrollWidth;
  if (whole > screen) found.push(`the page is ${whole} wide`);
  for (const one of document.body.querySelectorAll("*")) {
    const box = one.getBoundingClientRect();
    if (!box.width || !box.height) continue;
    const name = `${one.tagName.toLowerCase()}.${one.className}: ${one.textContent.trim().slice(0, 40)}`;
    if (box.left < -0.5 || box.right > screen + 0.5) found.push(`${name} reaches from ${box.left} to ${box.right}`);
    if (getComputedStyle(one).display !== "inline" && one.scrollWidth > one.clientWidth + 1) found.push(`${name} is cut off`);
  }
  return found;
}

// Every rule that axe has, what it cannot decide by itself included. Frames are looked at as pages of their own.
async function lookWithAxe() {
  const found = await window.axe.run({ exclude: ["iframe"] }, { iframes: false });
  const nodes = [...found.violations, ...found.incomplete].flatMap(({ id, nodes }) => nodes.map((node) => [id, node]));
  const violations = nodes.map(([id, node]) => {
    const { message } = node.any[0] ?? node.all[0] ?? node.none[0];
    return `${id}: ${message}: ${node.html.slice(0, 160)}`;
  });
  return { violations, rules: found.passes.length };
}

const browser = await chromium.launch({
  executablePath: job.browser,
  // No sandbox, for a container's root; the pages are ours and load nothing.
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run"],
});
try {
  const page = await (await browser.newContext()).newPage();
  let loaded = [];
  page.on("request", (request) => loaded.push(request.url()));
  const results = [];
  for (const view of job.views) {
    await page.setViewportSize({ width: view.width, height: 800 });
    await page.emulateMedia({ colorScheme: view.scheme });
    loaded = [];
    const address = pathToFileURL(view.page).href;
    await page.goto(address);
    if (view.text > 1) await page.evaluate(enlarge, view.text);
    const result = { wide: await page.evaluate(tooWide), violations: [], rules: 0 };
    if (view.axe) {
      await page.evaluate(axe);
      Object.assign(result, await page.evaluate(lookWithAxe));
    }
    result.background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    if (view.shot) await page.screenshot({ path: view.shot, fullPage: true });
    result.loaded = loaded.filter((url) => url !== address && url !== "about:srcdoc");
    results.push(result);
  }
  process.stdout.write(JSON.stringify(results));
} finally {
  await browser.close();
}
