import { CommandRefused } from '../cdp/connection.ts';
import { type Page, said } from '../page.ts';
import { evaluateIn, type Frame, framesOf, ownerOf } from './frames.ts';
import { LineWriter, type Tree, treeKey } from './lines.ts';

const usualLength = 30_000;
const mostLength = 200_000;
/** The accessibility tree of a larger document takes too much time and memory. */
const maxElements = 20_000;

/** A page as text, with references to the elements that take actions. */
export async function readPage(page: Page, maxLength = usualLength): Promise<{ text: string; isCut: boolean }> {
  const length = Math.max(1, Math.min(maxLength, mostLength));
  const [main, ...others] = await framesOf(page);
  if (main === undefined) return { text: '', isCut: false };
  if (await isTooLarge(main)) return { text: await plainText(main, length), isCut: true };
  const inner = new Map<string, Tree>();
  const [tree] = await Promise.all([treeOf(main), ...others.map((frame) => addInner(inner, frame))]);
  const writer = new LineWriter(length, inner);
  writer.write(tree);
  return { text: writer.text, isCut: writer.isCut };
}

async function treeOf({ id, code, root }: Frame): Promise<Tree> {
  const { nodes } = await root.send('Accessibility.getFullAXTree', { frameId: id });
  return { code, sessionId: root.sessionId, nodes };
}

/** Leaves out a frame that is too large or is removed in the meantime. */
async function addInner(inner: Map<string, Tree>, frame: Frame): Promise<void> {
  try {
    const owner = await ownerOf(frame);
    if (owner === undefined || (await isTooLarge(frame))) return;
    inner.set(treeKey(owner.root.sessionId, owner.backendNodeId), await treeOf(frame));
  } catch (error) {
    if (!(error instanceof CommandRefused)) throw error;
  }
}

async function isTooLarge(frame: Frame): Promise<boolean> {
  const count = await evaluateIn(frame, 'document.getElementsByTagName("*").length');
  return typeof count !== 'number' || count > maxElements;
}

/** The first texts of a document with very many elements, as far as they are found within two seconds. */
const findTexts = (maxLength: number) => `(() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const end = performance.now() + 2_000;
  let text = '';
  for (let node = walker.nextNode(); node !== null && performance.now() < end; node = walker.nextNode()) {
    if (['SCRIPT', 'STYLE', 'NOSCRIPT', 'TEMPLATE'].includes(node.parentNode.nodeName)) continue;
    const line = node.data.trim().slice(0, ${maxLength});
    if (line !== '') text += line + '\\n';
    if (text.length > ${maxLength}) break;
  }
  return text;
})()`;

/** The text of a document, without references. */
async function plainText(frame: Frame, maxLength: number): Promise<string> {
  const text = await evaluateIn(frame, findTexts(maxLength));
  const note = '(This page has too many elements to give them references. Act on it by points of its picture.)\n';
  return said(`${note}${typeof text === 'string' ? text : ''}`, maxLength);
}
