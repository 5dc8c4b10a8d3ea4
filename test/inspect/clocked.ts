import type { Browser, Page } from 'playwright-core';
import { createSpillway, type Spillway, type SpillwayOptions } from 'spillway';
import { serveInspector } from 'spillway/inspect';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { newPage } from './browser.ts';

/** What a page of fake timers takes for a frame. */
export const FRAME_MS = 16;

/** A layer in virtual time, and pages whose own clocks go with it: how busy the machine is changes nothing. */
export interface Clocked {
  readonly spillway: Spillway;
  readonly runtime: VirtualRuntime;
  /** Opens a page, which has heard all that there is; two frames go by. */
  readonly open: () => Promise<Page>;
  /** Lets a page's time go by, and with it nothing else. */
  readonly frames: (page: Page, count: number) => Promise<void>;
  /** Waits until a page has heard what there is; it draws it with its next frame. */
  readonly heard: (page: Page) => Promise<void>;
  /** Lets a frame go by for a page, and then for the layer; the page has heard what came of it. */
  readonly step: (page: Page) => Promise<void>;
}

const countLines = (): void => {
  const Own = EventSource;
  let lines = 0;
  class Counting extends Own {
    constructor(url: string | URL) {
      super(url);
      this.addEventListener('lines', ({ data }: MessageEvent<string>) => {
        lines += data.split('\n').length;
        Object.assign(globalThis, { lines });
      });
    }
  }
  Object.assign(globalThis, { EventSource: Counting });
};

export async function clocked(
  browser: Browser,
  options: SpillwayOptions,
  work: (parts: Clocked) => Promise<void>,
): Promise<void> {
  const runtime = virtualRuntime();
  const spillway = createSpillway({ ...options, runtime });
  const server = await serveInspector(spillway, { runtime });
  let told = 0;
  spillway.trace$.subscribe(() => told++);
  const heard = async (page: Page): Promise<void> => {
    await runtime.advance(0);
    await page.waitForFunction((count) => Reflect.get(globalThis, 'lines') === count, told);
  };
  const frames = (page: Page, count: number): Promise<void> => page.clock.runFor(FRAME_MS * count);
  const step = async (page: Page): Promise<void> => {
    await frames(page, 1);
    await runtime.advance(FRAME_MS);
    await heard(page);
  };
  const open = async (): Promise<Page> => {
    const page = await newPage(browser);
    await page.addInitScript(countLines);
    await page.clock.install({ time: 0 });
    await page.clock.pauseAt(100 * FRAME_MS);
    await page.goto(server.page);
    await step(page);
    await step(page);
    return page;
  };
  try {
    await work({ spillway, runtime, open, frames, heard, step });
  } finally {
    await spillway.close();
    await server.close();
  }
}
