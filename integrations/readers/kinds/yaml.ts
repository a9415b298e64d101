import { isAlias, isMap, isNode, isPair, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml';

/** Both count from 1. */
export interface YamlPlace {
  line: number;
  column: number;
}

export type YamlFault = YamlPlace & { detail: string };

/** A document of plain values, with the places of its values and keys by JSON pointers; or its faults. */
export type YamlText =
  | { value: unknown; values: Record<string, YamlPlace>; keys: Record<string, YamlPlace> }
  | { faults: YamlFault[] };

const wordsOf: Readonly<Partial<Record<string, string>>> = {
  MULTIPLE_DOCS: 'a second document begins here, and only one is read',
};
const maxFaults = 20;
const maxDetail = 500;
const maxNodes = 5_000;
const maxDepth = 100;
const tooDeep = 'is nested too deep';
const start = { line: 1, column: 1 };

/** Reads one document of YAML 1.2, without anchors, aliases and tags of its own. */
export async function readYaml(bytes: Uint8Array): Promise<YamlText> {
  const text = decode(bytes);
  if (text === undefined) return { faults: [{ ...start, detail: 'is not UTF-8' }] };
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true, merge: false });
  const placeAt = (offset: number): YamlPlace => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const faultAt = (offset: number, detail: string) => ({ ...placeAt(offset), detail: detail.slice(0, maxDetail) });
  const problems = [...document.errors, ...document.warnings];
  // The parser has run out of stack. Its other errors result from that.
  const deepest = problems.find(({ message }) => message.includes('call stack'));
  if (deepest !== undefined) return { faults: [faultAt(deepest.pos[0], tooDeep)] };
  const faults = problems.map(({ pos, code, message }) => faultAt(pos[0], wordsOf[code] ?? message));
  if (faults.length > 0) return { faults: faults.slice(0, maxFaults) };

  let nodes = 0;
  visit(document, {
    Node(_key, node, path) {
      nodes++;
      if (path.length > 2 * maxDepth) {
        faults.splice(0, faults.length, faultAt(node.range?.[0] ?? 0, tooDeep));
        return visit.BREAK;
      }
      const isOdd = isAlias(node) || node.anchor !== undefined;
      if (isOdd) faults.push(faultAt(node.range?.[0] ?? 0, 'anchors and aliases are not supported'));
      return nodes > maxNodes || faults.length === maxFaults ? visit.BREAK : undefined;
    },
  });
  if (nodes > maxNodes) return { faults: [{ ...start, detail: `has more than ${maxNodes} values` }] };
  if (faults.length > 0) return { faults };

  const values: Record<string, YamlPlace> = {};
  const keys: Record<string, YamlPlace> = {};
  const placeOf = (node: unknown) => placeAt(isNode(node) ? (node.range?.[0] ?? 0) : 0);
  const note = (node: unknown, pointer: string): void => {
    values[pointer] ??= placeOf(node);
    if (isSeq(node)) for (const [index, item] of node.items.entries()) note(item, `${pointer}/${index}`);
    if (!isMap(node)) return;
    for (const pair of node.items) {
      if (!isPair(pair) || !isScalar(pair.key)) continue;
      const child = `${pointer}/${escaped(String(pair.key.value))}`;
      keys[child] = placeOf(pair.key);
      // If a key has no value, the key's place stands for the value's.
      if (isNode(pair.value)) note(pair.value, child);
      else values[child] = keys[child];
    }
  };
  note(document.contents, '');
  return { value: document.toJS() as unknown, values, keys };
}

function escaped(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
