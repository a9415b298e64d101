import { z } from 'zod';
import { CommandRefused } from '../cdp/connection.ts';
import { browserError, wrong } from '../failures.ts';
import type { Page } from '../page.ts';
import { type Frame, framesOf, type LocalRoot, ownerOf, worldOf } from '../read/frames.ts';
import type { Point } from './input.ts';
import { innerCorner, place } from './scripts.ts';

const reference = /^([a-z]{3})(\d{1,15})$/;
const placed = z.object({ x: z.number(), y: z.number(), left: z.number(), top: z.number(), by: z.string().nullable() });
const corner = z.object({ x: z.number(), y: z.number() });

/** An element of a page that a reference names. */
export class PageElement {
  readonly #frame: Frame;
  readonly #backendNodeId: number;
  readonly #objectId: string;

  private constructor(frame: Frame, backendNodeId: number, objectId: string) {
    this.#frame = frame;
    this.#backendNodeId = backendNodeId;
    this.#objectId = objectId;
  }

  /** Throws 409 `ELEMENT_GONE`. */
  static async find(page: Page, ref: string): Promise<PageElement> {
    const [, code, digits] = reference.exec(ref) ?? [];
    const frame = (await framesOf(page)).find((each) => each.code === code);
    if (frame === undefined) throw gone();
    const backendNodeId = Number(digits);
    try {
      const executionContextId = await worldOf(frame);
      const { object } = await frame.root.send('DOM.resolveNode', { backendNodeId, executionContextId });
      const element = new PageElement(frame, backendNodeId, object.objectId);
      if ((await element.call('function () { return this.isConnected; }')) !== true) throw gone();
      return element;
    } catch (error) {
      throw error instanceof CommandRefused ? gone() : error;
    }
  }

  /** Calls a function on the element, in our own world. */
  async call(functionDeclaration: string, ...given: unknown[]): Promise<unknown> {
    return callOn(this.#frame.root, this.#objectId, functionDeclaration, given);
  }

  /**
   * Scrolls the element into view, and returns one of its points in the page’s viewport. Throws 409
   * `ELEMENT_NOT_VISIBLE`, `ELEMENT_COVERED`.
   */
  async point(): Promise<Point> {
    const node = { backendNodeId: this.#backendNodeId };
    try {
      await this.#frame.root.send('DOM.scrollIntoViewIfNeeded', node);
    } catch (error) {
      throw error instanceof CommandRefused ? invisible() : error;
    }
    const read = placed.nullable().safeParse(await this.call(place));
    if (!read.success) throw wrong(read.error);
    if (read.data === null) throw invisible();
    const { by, x, y, left, top } = read.data;
    if (by !== null) {
      // A page can invent element names that read like sentences. An agent would take them for our words.
      const what = /^[a-z][a-z0-9]{0,9}$/.test(by) ? `A <${by}>` : 'Something';
      throw browserError('ELEMENT_COVERED', `${what} lies over this element. Close it, or scroll.`);
    }
    // The element's corner as its renderer sees it: the renderer may draw frames around the element's own.
    const inRoot = await cornerIn(this.#frame.root, this.#backendNodeId);
    const outside = await cornerOfRoot(this.#frame.root);
    return { x: x - left + inRoot.x + outside.x, y: y - top + inRoot.y + outside.y };
  }
}

/** The upper left corner of an element in its renderer's coordinates. */
async function cornerIn(root: LocalRoot, backendNodeId: number): Promise<Point> {
  const { quads } = await root.send('DOM.getContentQuads', { backendNodeId });
  const corners = quads.flatMap((quad) => [0, 2, 4, 6].map((at) => ({ x: quad[at] ?? 0, y: quad[at + 1] ?? 0 })));
  if (corners.length === 0) throw invisible();
  return { x: Math.min(...corners.map(({ x }) => x)), y: Math.min(...corners.map(({ y }) => y)) };
}

/** Where a renderer's area is on the page. */
async function cornerOfRoot(root: LocalRoot): Promise<Point> {
  if (root.parent === undefined) return { x: 0, y: 0 };
  const owner = await ownerOf({ id: root.frameId, code: '', root });
  if (owner === undefined) throw gone();
  const { root: parent, backendNodeId } = owner;
  const { object } = await parent.send('DOM.resolveNode', { backendNodeId });
  const inner = corner.safeParse(await callOn(parent, object.objectId, innerCorner, []));
  if (!inner.success) throw wrong(inner.error);
  const [iframe, outside] = [await cornerIn(parent, backendNodeId), await cornerOfRoot(parent)];
  return { x: iframe.x + inner.data.x + outside.x, y: iframe.y + inner.data.y + outside.y };
}

async function callOn(root: LocalRoot, objectId: string, functionDeclaration: string, given: unknown[]) {
  const { result, exceptionDetails } = await root.send('Runtime.callFunctionOn', {
    functionDeclaration,
    objectId,
    arguments: given.map((value) => ({ value })),
    returnByValue: true,
  });
  // Our functions fail on nodes that are not elements, such as pieces of text.
  if (exceptionDetails !== undefined)
    throw browserError('ACTION_REFUSED', 'This node is not an element that takes this.');
  return result.value;
}

function gone(): Error {
  return browserError('ELEMENT_GONE', 'This element is no longer on the page. Read the page again.');
}

function invisible(): Error {
  return browserError('ELEMENT_NOT_VISIBLE', 'This element is not visible now. Read the page again.');
}
