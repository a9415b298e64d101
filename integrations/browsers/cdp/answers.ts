import { z } from 'zod';

/**
 * What Chromium answers, as far as we use it (https://chromedevtools.github.io/devtools-protocol/tot/). Whatever else
 * runs on its computer may answer in its place: what is not as it is here is refused.
 */

const nothing = z.object({});
const text = z.string();
const finite = z.number();
const count = z.int();
const address = text.max(4_194_304);

const targetInfo = z.object({ targetId: text.max(200), type: text, title: text, url: address });
export type TargetInfo = z.infer<typeof targetInfo>;

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
/** Four corners, x and y in turn. */
const quad = z.array(finite).length(8);
export type Quad = z.infer<typeof quad>;

export const answers = {
  'Browser.close': nothing,
  'Target.getTargets': z.object({ targetInfos: z.array(targetInfo) }),
  'Target.createTarget': z.object({ targetId: text }),
  'Target.closeTarget': nothing,
  'Target.activateTarget': nothing,
  'Target.attachToTarget': z.object({ sessionId: text }),
  'Target.detachFromTarget': nothing,
  'Target.setAutoAttach': nothing,
  'Inspector.enable': nothing,
  'Page.enable': nothing,
  'Page.setLifecycleEventsEnabled': nothing,
  'Page.handleJavaScriptDialog': nothing,
  'Page.navigate': z.object({
    frameId: text,
    loaderId: text.optional(),
    errorText: text.optional(),
    isDownload: z.boolean().optional(),
  }),
  'Page.reload': nothing,
  'Page.stopLoading': nothing,
  'Page.getNavigationHistory': z.object({
    currentIndex: count,
    entries: z.array(z.object({ id: count, url: address })),
  }),
  'Page.navigateToHistoryEntry': nothing,
  'Page.getFrameTree': z.object({ frameTree }),
  'Page.getLayoutMetrics': z.object({
    cssLayoutViewport: z.object({ clientWidth: finite, clientHeight: finite }),
    cssVisualViewport: view,
    cssContentSize: z.object({ width: finite, height: finite }),
  }),
  'Page.captureScreenshot': z.object({ data: text }),
  'Page.printToPDF': z.object({ stream: text }),
  'IO.read': z.object({ data: text, eof: z.boolean(), base64Encoded: z.boolean().optional() }),
  'IO.close': nothing,
  'Runtime.evaluate': evaluated,
  'Runtime.callFunctionOn': evaluated,
  'Page.createIsolatedWorld': z.object({ executionContextId: count }),
  'Accessibility.getFullAXTree': z.object({ nodes: z.array(axNode) }),
  'DOM.getFrameOwner': z.object({ backendNodeId: count }),
  'DOM.resolveNode': z.object({ object: z.object({ objectId: text }) }),
  'DOM.scrollIntoViewIfNeeded': nothing,
  'DOM.getContentQuads': z.object({ quads: z.array(quad) }),
  'DOM.focus': nothing,
  'Input.dispatchMouseEvent': nothing,
  'Input.dispatchKeyEvent': nothing,
  'Input.insertText': nothing,
};

export const events = {
  'Inspector.targetCrashed': nothing,
  'Page.javascriptDialogOpening': z.object({ type: text, message: text }),
  'Page.lifecycleEvent': z.object({ frameId: text, loaderId: text, name: text }),
  'Page.frameStartedNavigating': z.object({ frameId: text, loaderId: text, navigationType: text.optional() }),
  'Page.frameStoppedLoading': z.object({ frameId: text }),
  'Target.attachedToTarget': z.object({ sessionId: text, targetInfo }),
  'Target.detachedFromTarget': z.object({ sessionId: text }),
};

export type AnswerTo<M extends keyof typeof answers> = z.infer<(typeof answers)[M]>;
export type EventName = keyof typeof events;
export type EventOf<E extends EventName> = z.infer<(typeof events)[E]>;
