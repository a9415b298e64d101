import type { AxNode } from '../cdp/protocol.ts';
import { said } from '../page.ts';
import {
  closed,
  hidden,
  inline,
  interactive,
  labels,
  landmarks,
  menus,
  named,
  plainNames,
  rows,
  states,
  values,
} from './roles.ts';

/** Limits for a name or value, for a piece of text, and for an address. */
const maxNameLength = 500;
const maxTextLength = 4_000;
const maxUrlLength = 200;
/** A page may nest more deeply than the stack allows. Deeper content is not read. */
const maxDepth = 500;
const maxIndent = 12;
const maxOptions = 60;

/** A document’s accessibility tree. */
export interface Tree {
  /** The document’s code in references. */
  code: string;
  /** The DevTools session of its renderer. */
  sessionId: string;
  nodes: AxNode[];
}

/** The key of the tree within an iframe: the renderer that draws the iframe, and the iframe’s node there. */
export function treeKey(sessionId: string, backendNodeId: number): string {
  return `${backendNodeId} ${sessionId}`;
}

interface Place {
  tree: Tree;
  indent: number;
  depth: number;
  /** Whether the name of an ancestor already has the text. */
  isSaid: boolean;
  /** Whether the node is an option of a native list. Only the list itself gets a reference. */
  isInMenu: boolean;
}

/** Writes a page as lines, up to a length. */
export class LineWriter {
  readonly #lines: string[] = [];
  readonly #maxLength: number;
  readonly #inner: ReadonlyMap<string, Tree>;
  #length = 0;
  isCut = false;

  /** `inner` has the trees within iframes, by `treeKey`. */
  constructor(maxLength: number, inner: ReadonlyMap<string, Tree>) {
    this.#maxLength = maxLength;
    this.#inner = inner;
  }

  get text(): string {
    return this.#lines.join('\n');
  }

  write(tree: Tree, indent = 0, depth = 0): void {
    const byId = new Map(tree.nodes.map((node) => [node.nodeId, node]));
    const [first] = tree.nodes;
    if (first !== undefined) this.#writeNode(first, byId, { tree, indent, depth, isSaid: false, isInMenu: false });
  }

  #writeNode(node: AxNode, byId: Map<string, AxNode>, at: Place): void {
    // A node is written once, even if the page’s nodes claim to contain each other.
    if (this.isCut || at.depth > maxDepth || !byId.delete(node.nodeId)) return;
    const role = textOf(node.role?.value);
    if (hidden.has(role)) return;
    if (role === 'StaticText') {
      if (!at.isSaid) this.#add(at.indent, said(textOf(node.name?.value), maxTextLength).trim());
      return;
    }
    const children = (where: Partial<Place>) =>
      this.#writeChildren(node, byId, { ...at, ...where, depth: at.depth + 1 });
    const inner =
      role === 'Iframe' ? this.#inner.get(treeKey(at.tree.sessionId, node.backendDOMNodeId ?? 0)) : undefined;
    if (inner !== undefined) {
      this.#add(at.indent, `frame${quoted(nameOf(node))}`);
      this.write(inner, at.indent + 1, at.depth + 1);
    } else if (node.ignored) children({});
    else if (!at.isInMenu && isForActing(node, role)) {
      const name = nameOf(node);
      this.#add(at.indent, `[${at.tree.code}${node.backendDOMNodeId ?? 0}] ${describe(node, role, name)}`);
      if (!closed.has(role)) children({ indent: at.indent + 1, isSaid: name !== '' });
    } else if (named.has(role)) {
      const name = nameOf(node);
      if (name !== '' && !(at.isSaid && role !== 'option')) this.#add(at.indent, describe(node, role, name));
      if (!closed.has(role)) children({ indent: at.indent + 1, isSaid: at.isSaid || name !== '' });
    } else if (landmarks.has(role) && !at.isSaid) {
      this.#add(at.indent, describe(node, role, nameOf(node)));
      children({ indent: at.indent + 1 });
    } else if (rows.has(role)) this.#writeJoined(() => children({}), at.indent, ' | ');
    else if (inline.has(role)) this.#writeJoined(() => children({}), at.indent, ' ');
    else children({ isSaid: at.isSaid || labels.has(role), isInMenu: at.isInMenu || menus.has(role) });
  }

  #writeChildren({ childIds = [] }: AxNode, byId: Map<string, AxNode>, at: Place): void {
    let options = 0;
    for (const id of childIds) {
      const child = byId.get(id);
      if (child === undefined) continue;
      if (child.role?.value === 'option' && ++options > maxOptions) {
        this.#add(at.indent, `… and ${childIds.length - maxOptions} more`);
        return;
      }
      this.#writeNode(child, byId, at);
    }
  }

  /** Joins the lines that `write` adds into one, unless one of them is nested. */
  #writeJoined(write: () => void, indent: number, between: string): void {
    const from = this.#lines.length;
    write();
    const prefix = indentOf(indent);
    const cells = this.#lines.slice(from).map((line) => line.slice(prefix.length));
    if (cells.length < 2 || cells.some((cell) => cell.startsWith(' '))) return;
    this.#lines.splice(from, cells.length, `${prefix}${cells.join(between)}`);
  }

  #add(indent: number, text: string): void {
    if (this.isCut || text === '') return;
    const line = indentOf(indent) + text.replaceAll('\n', ' ');
    this.#length += line.length + 1;
    if (this.#length > this.#maxLength) this.isCut = true;
    else this.#lines.push(line);
  }
}

function describe(node: AxNode, role: string, name: string): string {
  const known = new Map((node.properties ?? []).map(({ name: key, value }) => [key, value?.value]));
  const parts = [`${plainNames[role] ?? role}${quoted(name)}`];
  const value = said(textOf(node.value?.value), maxNameLength);
  if (value !== '' && value !== name) parts.push(`value${quoted(value)}`);
  for (const key of values) {
    const given = known.get(key);
    const text = typeof given === 'object' ? '' : String(given ?? '');
    if (text !== '' && !(key === 'invalid' && text === 'false')) parts.push(`${key}=${said(text, 20)}`);
  }
  for (const key of states) if (known.get(key) === true) parts.push(key);
  const url = textOf(known.get('url'));
  if (role === 'link' && url !== '') parts.push(`to ${said(url, maxUrlLength)}`);
  return parts.join(' ');
}

function nameOf(node: AxNode): string {
  return said(textOf(node.name?.value), maxNameLength).replace(/\s+/g, ' ').trim();
}

/** Whether a node takes actions: by its role, or because it takes the focus. */
function isForActing({ properties = [] }: AxNode, role: string): boolean {
  if (interactive.has(role)) return true;
  if (landmarks.has(role) || role === 'RootWebArea') return false;
  return properties.some(({ name, value }) => name === 'focusable' && value?.value === true);
}

function indentOf(indent: number): string {
  return '  '.repeat(Math.min(indent, maxIndent));
}

function quoted(name: string): string {
  return name === '' ? '' : ` ${JSON.stringify(name)}`;
}

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
