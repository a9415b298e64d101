import { createHash } from 'node:crypto';
import { orAfter } from '../../../base/async.ts';
import { CommandRefused } from '../cdp/connection.ts';
import type { FrameTree, Send } from '../cdp/protocol.ts';
import type { Page } from '../page.ts';

/** The limit for one page. Pages with more frames mostly have advertisements in them. */
const maxFrames = 40;
/** We leave out a renderer that has not answered by then. */
const silentMs = 1_000;
const codeLetters = 3;

/** The frames that one renderer draws together. Iframes of other sites have renderers of their own. */
export interface LocalRoot {
  sessionId: string;
  /** The outermost of its frames. */
  frameId: string;
  /** The renderer that draws the iframe around it; undefined for the page’s main frame. */
  parent: LocalRoot | undefined;
  send: Send;
}

/** A document of a page: the main one, or an iframe’s. */
export interface Frame {
  id: string;
  /** Three letters that stand for this document in references. */
  code: string;
  root: LocalRoot;
}

/** All frames of a page, the main one first. */
export async function framesOf(page: Page): Promise<Frame[]> {
  const frames: Frame[] = [];
  const roots = [rootOf(page, page.sessionId, page.targetId)];
  for (const root of roots) {
    const isMain = root.parent === undefined;
    const look = lookInto(page, root);
    const found = isMain ? await look : await orNothing(look);
    frames.push(...found.frames.slice(0, maxFrames - frames.length));
    if (roots.length < maxFrames) roots.push(...found.roots);
  }
  return frames;
}

function rootOf(page: Page, sessionId: string, frameId: string, parent?: LocalRoot): LocalRoot {
  return { sessionId, frameId, parent, send: (method, params) => page.cdp.send(method, params, sessionId) };
}

/** The frames that a renderer draws, and the renderers that draw iframes within them. */
async function lookInto(page: Page, root: LocalRoot): Promise<{ frames: Frame[]; roots: LocalRoot[] }> {
  const roots: LocalRoot[] = [];
  const note: Parameters<typeof page.cdp.on<'Target.attachedToTarget'>>[1] = ({ sessionId, targetInfo }, of) => {
    if (of !== root.sessionId || targetInfo.type !== 'iframe') return;
    roots.push(rootOf(page, sessionId, targetInfo.targetId, root));
  };
  page.cdp.on('Target.attachedToTarget', note);
  try {
    // Chromium answers this once all existing iframes are attached.
    const attached = root.send('Target.setAutoAttach', {
      autoAttach: true,
      waitForDebuggerOnStart: false,
      flatten: true,
    });
    const [{ frameTree }] = await Promise.all([root.send('Page.getFrameTree', {}), attached]);
    return { frames: flat(frameTree, root), roots };
  } finally {
    page.cdp.off('Target.attachedToTarget', note);
  }
}

function flat(outermost: FrameTree, root: LocalRoot): Frame[] {
  const frames: Frame[] = [];
  const trees = [outermost];
  for (const { frame, childFrames = [] } of trees) {
    if (frames.length >= maxFrames) break;
    frames.push({ id: frame.id, code: codeOf(frame.loaderId), root });
    trees.push(...childFrames);
  }
  return frames;
}

/** Derived from the loader, because each document has another one. */
function codeOf(loaderId: string): string {
  const hash = createHash('sha256').update(loaderId).digest();
  const letters = Array.from({ length: codeLetters }, (_, at) => String.fromCharCode(97 + ((hash[at] ?? 0) % 26)));
  return letters.join('');
}

async function orNothing<T>(look: Promise<{ frames: T[]; roots: LocalRoot[] }>) {
  const nothing = { frames: [], roots: [] };
  try {
    return await orAfter(look, silentMs, nothing);
  } catch (error) {
    if (error instanceof CommandRefused) return nothing; // The frame was removed in the meantime.
    throw error;
  }
}

/** The iframe element around a frame, in its renderer’s numbering; undefined for the main frame. */
export async function ownerOf(frame: Frame): Promise<{ root: LocalRoot; backendNodeId: number } | undefined> {
  const isOutermost = frame.id === frame.root.frameId;
  const root = isOutermost ? frame.root.parent : frame.root;
  if (root === undefined) return undefined;
  try {
    return { root, ...(await root.send('DOM.getFrameOwner', { frameId: frame.id })) };
  } catch (error) {
    if (error instanceof CommandRefused) return undefined;
    throw error;
  }
}

/**
 * Makes a world for our own functions in a document. The page can neither see nor change it. Throws `CommandRefused`.
 */
export async function worldOf({ id, root }: Frame): Promise<number> {
  return (await root.send('Page.createIsolatedWorld', { frameId: id })).executionContextId;
}

/** Evaluates an expression in a world of our own. */
export async function evaluateIn(frame: Frame, expression: string): Promise<unknown> {
  const contextId = await worldOf(frame);
  return (await frame.root.send('Runtime.evaluate', { expression, contextId, returnByValue: true })).result.value;
}
