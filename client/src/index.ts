export type { components, operations, paths } from './api.ts';
export { AtriumChatTransport, type ChatTransportOptions } from './chatTransport.ts';
export { type AtriumClient, type ClientOptions, createAtriumClient } from './client.ts';
export type { Token } from './connection.ts';
export { AtriumError } from './errors.ts';
export { visibleParts } from './visibleParts.ts';
