import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { AnswerTo, FrameTree } from '../cdp/answers.ts';
import type { Commands, Method } from '../cdp/commands.ts';
import { CommandRefused } from '../cdp/connection.ts';
import type { Page } from '../page.ts';

/** Of one page: more than these are advertisements, and nothing that somebody came for. */
const maxFrames = 40;
/** A process that does not say in this time what it draws, is left out. */
const silentMs = 1_000;
const codeLetters = 3;

/** The frames that one process draws together. Iframes of other sites have processes of their own. */
export interface LocalRoot {
  sessionId: string;
  /** Of the outermost of them. */
  frameId: string;
  /** Where the iframe of that is; undefined for the page’s own. */
  parent: LocalRoot | undefined;
  send<M extends Method>(method: M, params: Commands[M]): Promise<AnswerTo<M>>;
}

/** A document within a page: its main one, or that of an iframe. */
export interface Frame {
  id: string;
  /** Three letters that stand for this very document in references. */
  code: string;
  root: LocalRoot;
}

/** All frames of a page, the main one first. */
export async function framesOf(page: Page): Promise<Frame[]> {
  const frames: Frame[] = [];
  const roots = [rootOf(page, page.sessionId, page.targetId, undefined)];
  for (const root of roots) {
    const isMain = root.parent === undefined;
    const look = lookInto(page, root);
    const found = isMain ? await look : await orNothing(look);
    frames.push(...found.frames.slice(0, maxFrames - frames.length));
    if (roots.length < maxFrames) roots.push(...found.roots);
  }
  return frames;
}

function rootOf(page: Page, sessionId: string, frameId: string, parent: LocalRoot | undefined): LocalRoot {
  return { sessionId, frameId, parent, send: (method, params) => page.cdp.send(method, params, sessionId) };
}

/** What this process draws, and which others draw something within that. */
async function lookInto(page: Page, root: LocalRoot): Promise<{ frames: Frame[]; roots: LocalRoot[] }> {
  const roots: LocalRoot[] = [];
  const note: Parameters<typeof page.cdp.on<'Target.attachedToTarget'>>[1] = ({ sessionId, targetInfo }, of) => {
    if (of !== root.sessionId || targetInfo.type !== 'iframe') return;
    roots.push(rootOf(page, sessionId, targetInfo.targetId, root));
  };
  page.cdp.on('Target.attachedToTarget', note);
  try {
    // It is answered once those that are there are attached.
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

/** Of the loader, which is another one for each document. */
function codeOf(loaderId: string): string {
  const hash = createHash('sha256').update(loaderId).digest();
  const letters = Array.from({ length: codeLetters }, (_, at) => String.fromCharCode(97 + ((hash[at] ?? 0) % 26)));
  return letters.join('');
}

async function orNothing<T>(look: Promise<{ frames: T[]; roots: LocalRoot[] }>) {
  const nothing = { frames: [], roots: [] };
  const given = new AbortController();
  try {
    return await Promise.race([look, delay(silentMs, nothing, { signal: given.signal })]);
  } catch (error) {
    if (error instanceof CommandRefused) return nothing; // it has gone meanwhile
    throw error;
  } finally {
    given.abort();
    look.catch(() => undefined);
  }
}

/** The iframe that a frame is in, by the process in whose document it is; undefined for the main one. */
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
