/** What Chromium is asked, with the parameters that we use. */

type None = Record<string, never>;
interface OfNode {
  backendNodeId: number;
}

export interface MouseInput {
  type: 'mousePressed' | 'mouseReleased' | 'mouseMoved' | 'mouseWheel';
  x: number;
  y: number;
  button?: 'none' | 'left' | 'middle' | 'right';
  buttons?: number;
  clickCount?: number;
  deltaX?: number;
  deltaY?: number;
}

export interface KeyInput {
  type: 'keyDown' | 'keyUp' | 'rawKeyDown';
  modifiers: number;
  key: string;
  code: string;
  windowsVirtualKeyCode: number;
  text?: string;
}

export interface Clip {
  x: number;
  y: number;
  width: number;
  height: number;
  scale: number;
}

export interface Commands {
  'Browser.close': None;
  'Target.getTargets': None;
  'Target.createTarget': { url: string };
  'Target.closeTarget': { targetId: string };
  'Target.activateTarget': { targetId: string };
  'Target.attachToTarget': { targetId: string; flatten: true };
  'Target.detachFromTarget': { sessionId: string };
  'Target.setAutoAttach': { autoAttach: boolean; waitForDebuggerOnStart: false; flatten: true };
  'Inspector.enable': None;
  'Page.enable': None;
  'Page.setLifecycleEventsEnabled': { enabled: true };
  'Page.handleJavaScriptDialog': { accept: boolean; promptText?: string };
  'Page.navigate': { url: string };
  'Page.reload': None;
  'Page.stopLoading': None;
  'Page.getNavigationHistory': None;
  'Page.navigateToHistoryEntry': { entryId: number };
  'Page.getFrameTree': None;
  'Page.getLayoutMetrics': None;
  'Page.captureScreenshot': { format: 'png'; clip?: Clip; captureBeyondViewport?: boolean };
  'Page.printToPDF': { printBackground: boolean; preferCSSPageSize: boolean; transferMode: 'ReturnAsStream' };
  'IO.read': { handle: string; size: number };
  'IO.close': { handle: string };
  'Runtime.evaluate': { expression: string; returnByValue: true; contextId?: number };
  'Runtime.callFunctionOn': {
    functionDeclaration: string;
    objectId: string;
    arguments: { value: unknown }[];
    returnByValue: true;
  };
  'Page.createIsolatedWorld': { frameId: string };
  'Accessibility.getFullAXTree': { frameId: string };
  'DOM.getFrameOwner': { frameId: string };
  'DOM.resolveNode': OfNode & { executionContextId?: number };
  'DOM.scrollIntoViewIfNeeded': OfNode;
  'DOM.getContentQuads': OfNode;
  'DOM.focus': OfNode;
  'Input.dispatchMouseEvent': MouseInput;
  'Input.dispatchKeyEvent': KeyInput;
  'Input.insertText': { text: string };
}

export type Method = keyof Commands;
