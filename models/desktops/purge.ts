import type { AreaPurge } from '../database/areaPurge.ts';

export const desktopsPurge: AreaPurge = { ofSpace: ['desktop_recordings', 'desktop_links', 'desktop_sessions'] };
