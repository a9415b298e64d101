import { z } from 'zod';

/**
 * The part of the DevTools protocol that we use (https://chromedevtools.github.io/devtools-protocol/tot/): each command
 * with its parameters and its answer, and the events. Another program on the computer may answer in Chromium's place,
 * so every answer and every event is checked.
 */

const nothing = z.object({});
const text = z.string();
const finite = z.number();
const count = z.int();
const address = text.max(4_194_304);

const targetInfo = z.object({ targetId: text.max(200), type: text, title: text, url: address });

export interface FrameTree {
  frame: { id: string; loaderId: string; url: string };
  childFrames?: FrameTree[] | undefined;
}
const frameTree: z.ZodType<FrameTree> = z.object({
  frame: z.object({ id: text, loaderId: text, url: address }),
  get childFrames() {
    return z.array(frameTree).optional();
  },
});

const remoteObject = z.object({ type: text, value: z.unknown().optional(), objectId: text.optional() });
const evaluated = z.object({ result: remoteObject, exceptionDetails: z.object({ text }).optional() });

const axValue = z.object({ value: z.unknown().optional() }).optional();
const axNode = z.object({
  nodeId: text,
  ignored: z.boolean(),
  role: axValue,
  name: axValue,
  value: axValue,
  properties: z.array(z.object({ name: text, value: axValue })).optional(),
  childIds: z.array(text).optional(),
  backendDOMNodeId: count.optional(),
});
export type AxNode = z.infer<typeof axNode>;

const view = z.object({ pageX: finite, pageY: finite, clientWidth: finite, clientHeight: finite });
/** Four corners: x and y in turn. */
const quad = z.array(finite).length(8);

type Node = { backendNodeId: number };
export type Clip = { x: number; y: number; width: number; height: number; scale: number };
type MouseInput = {
  type: 'mousePressed' | 'mouseReleased' | 'mouseMoved' | 'mouseWheel';
  x: number;
  y: number;
  button?: 'none' | 'left' | 'middle' | 'right';
  buttons?: number;
  clickCount?: number;
  deltaX?: number;
  deltaY?: number;
};
type KeyInput = {
  type: 'keyDown' | 'keyUp' | 'rawKeyDown';
  modifiers: number;
  key: string;
  code: string;
  windowsVirtualKeyCode: number;
  text?: string;
};
type FunctionCall = {
  functionDeclaration: string;
  objectId: string;
  arguments: { value: unknown }[];
  returnByValue: true;
};

/** A command with these parameters, whose answer has this form. */
function command<Params = Record<string, never>>() {
  return <Answer extends z.ZodType>(answer: Answer) => answer as Answer & { params?: Params };
}
const plain = command();

export const commands = {
  'Browser.close': plain(nothing),
  'Target.getTargets': plain(z.object({ targetInfos: z.array(targetInfo) })),
  'Target.createTarget': command<{ url: string }>()(z.object({ targetId: text })),
  'Target.closeTarget': command<{ targetId: string }>()(nothing),
  'Target.activateTarget': command<{ targetId: string }>()(nothing),
  'Target.attachToTarget': command<{ targetId: string; flatten: true }>()(z.object({ sessionId: text })),
  'Target.detachFromTarget': command<{ sessionId: string }>()(nothing),
  'Target.setAutoAttach': command<{ autoAttach: boolean; waitForDebuggerOnStart: false; flatten: true }>()(nothing),
  'Inspector.enable': plain(nothing),
  'Page.enable': plain(nothing),
  'Page.setLifecycleEventsEnabled': command<{ enabled: true }>()(nothing),
  'Page.handleJavaScriptDialog': command<{ accept: boolean; promptText?: string }>()(nothing),
  'Page.navigate': command<{ url: string }>()(
    z.object({
      frameId: text,
      loaderId: text.optional(),
      errorText: text.optional(),
      isDownload: z.boolean().optional(),
    }),
  ),
  'Page.reload': plain(nothing),
  'Page.stopLoading': plain(nothing),
  'Page.getNavigationHistory': plain(
    z.object({ currentIndex: count, entries: z.array(z.object({ id: count, url: address })) }),
  ),
  'Page.navigateToHistoryEntry': command<{ entryId: number }>()(nothing),
  'Page.getFrameTree': plain(z.object({ frameTree })),
  'Page.getLayoutMetrics': plain(
    z.object({ cssVisualViewport: view, cssContentSize: z.object({ width: finite, height: finite }) }),
  ),
  'Page.captureScreenshot': command<{ format: 'png'; clip: Clip; captureBeyondViewport: boolean }>()(
    z.object({ data: text }),
  ),
  'Page.printToPDF': command<{ printBackground: true; preferCSSPageSize: true; transferMode: 'ReturnAsStream' }>()(
    z.object({ stream: text }),
  ),
  'IO.read': command<{ handle: string; size: number }>()(
    z.object({ data: text, eof: z.boolean(), base64Encoded: z.boolean().optional() }),
  ),
  'IO.close': command<{ handle: string }>()(nothing),
  'Runtime.evaluate': command<{ expression: string; returnByValue: true; contextId?: number }>()(evaluated),
  'Runtime.callFunctionOn': command<FunctionCall>()(evaluated),
  'Page.createIsolatedWorld': command<{ frameId: string }>()(z.object({ executionContextId: count })),
  'Accessibility.getFullAXTree': command<{ frameId: string }>()(z.object({ nodes: z.array(axNode) })),
  'DOM.getFrameOwner': command<{ frameId: string }>()(z.object({ backendNodeId: count })),
  'DOM.resolveNode': command<Node & { executionContextId?: number }>()(
    z.object({ object: z.object({ objectId: text }) }),
  ),
  'DOM.scrollIntoViewIfNeeded': command<Node>()(nothing),
  'DOM.getContentQuads': command<Node>()(z.object({ quads: z.array(quad) })),
  'Input.dispatchMouseEvent': command<MouseInput>()(nothing),
  'Input.dispatchKeyEvent': command<KeyInput>()(nothing),
  'Input.insertText': command<{ text: string }>()(nothing),
};

export const events = {
  'Inspector.targetCrashed': nothing,
  'Page.javascriptDialogOpening': z.object({ type: text, message: text }),
  'Page.lifecycleEvent': z.object({ frameId: text, loaderId: text, name: text }),
  'Page.frameStartedNavigating': z.object({ frameId: text, loaderId: text, navigationType: text.optional() }),
  'Page.frameStoppedLoading': z.object({ frameId: text }),
  'Target.attachedToTarget': z.object({ sessionId: text, targetInfo }),
};

export type Method = keyof typeof commands;
export type ParamsOf<M extends Method> = NonNullable<(typeof commands)[M]['params']>;
export type AnswerTo<M extends Method> = z.infer<(typeof commands)[M]>;
export type EventName = keyof typeof events;
export type EventOf<E extends EventName> = z.infer<(typeof events)[E]>;
/** Sends one command, to the browser itself or to one of its pages. */
export type Send = <M extends Method>(method: M, params: ParamsOf<M>) => Promise<AnswerTo<M>>;
