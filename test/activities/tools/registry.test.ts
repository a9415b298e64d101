import { createTools, type ToolDeps } from '../../../activities/tools/index.ts';
import { ToolRegistry } from '../../../activities/tools/registry.ts';
import type { Tool } from '../../../activities/tools/tool.ts';

/** Stands for any dependency and any number of the configuration, because tools are only described here, not run. */
const nothing: unknown = new Proxy(() => nothing, {
  get: (_target, name) => (name === Symbol.toPrimitive ? () => 0 : nothing),
});

const toolOf = (inputSchema: object) => ({ name: 'odd', inputSchema }) as Tool;
const never = () => Promise.reject(new Error());
const registryOf = (tool: Tool) => new ToolRegistry({ tools: [tool], standingOf: never, completionOf: never });

test("Every tool's input schema compiles", () => {
  expect(() => createTools(nothing as ToolDeps).compileAll()).not.toThrow();
});

test('Compiling finds an invalid schema', () => {
  expect(() => registryOf(toolOf({ type: 'object', propertys: {} })).compileAll()).toThrow('propertys');
});

test('An input is checked against its schema and gets its defaults', () => {
  const tool = toolOf({
    ...{ type: 'object', required: ['a'], additionalProperties: false },
    properties: { a: { type: 'string' }, b: { type: 'integer', default: 7 } },
  });
  const registry = registryOf(tool);
  const input = { a: 'x' };
  expect(registry.faultsOf(tool, input)).toBeUndefined();
  expect(input).toEqual({ a: 'x', b: 7 });
  expect(registry.faultsOf(tool, { c: 1 })).toBe(
    `The input of the tool is not valid: it must have required property 'a'; it must NOT have additional properties ("c").`,
  );
  expect(registry.faultsOf(toolOf({}), { c: 1 })).toBeUndefined();
});
