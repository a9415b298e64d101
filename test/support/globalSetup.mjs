export { startTestStack as default } from './testStack.ts';
