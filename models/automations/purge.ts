import type { AreaPurge } from '../database/areaPurge.ts';

/** Automations first: a run is only added while its automation is there. */
export const automationsPurge: AreaPurge = { ofSpace: ['automations', 'automation_runs'] };
