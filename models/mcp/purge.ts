import type { AreaPurge } from '../database/areaPurge.ts';

export const mcpPurge: AreaPurge = { ofSpace: ['mcp_servers'] };
