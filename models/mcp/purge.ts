import type { AreaPurge } from '../areaPurge.ts';

export const mcpPurge: AreaPurge = { ofSpace: ['mcp_servers'] };
