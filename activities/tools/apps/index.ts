import { lookUntil } from '../../../base/async.ts';
import { collectOutput } from '../../../integrations/computers/output/collectOutput.ts';
import { maskedOutput } from '../../../integrations/computers/output/maskedOutput.ts';
import { listApps } from '../../../models/apps/app.ts';
import { askToRun } from '../../../models/apps/askToRun.ts';
import { waitsBeside } from '../../../models/apps/requireVersionInUse.ts';
import { getRun, isActive, processIdOf, type Run } from '../../../models/apps/run.ts';
import { askToCancel } from '../../../models/apps/steps.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import { findPlaces } from '../../../models/drive/place.ts';
import { actorOfTurn, idOfCall } from '../calls.ts';
import { objectSchema, serverTool, type Tool } from '../tool.ts';
import { type AppInput, type AppToolDeps, appAt, appProperty, runOf } from './place.ts';

const longestWaitSeconds = 600;
const marginMs = 60_000;
const shownApps = 100;
const shownText = 48_000;

/** Tools over the apps of a turn’s space. */
export function appTools(deps: AppToolDeps): Tool[] {
  const { database, liveComputers, secrets, workflows } = deps;

  return [
    serverTool<Record<string, never>>({
      name: 'app_list',
      description:
        'Lists the apps of the space. An app is a folder or repository of the drive whose file atrium.yaml lists the components that can be run.',
      access: 'read',
      role: 'viewer',
      scope: 'apps:read',
      timeoutMs: 60_000,
      afterCrash: 'again',
      inputSchema: objectSchema({}),
      async run(_input, { turn }) {
        const { data, nextCursor } = await listApps(database, turn.spaceId, { limit: shownApps });
        const places = await findPlaces(
          database,
          data.map(({ itemId }) => itemId),
        );
        const apps = data.flatMap(({ itemId, manifest: { name, components }, problem, waitingId }) => {
          const place = places.get(itemId);
          if (place?.isLive !== true) return [];
          const shown = components.map(({ name: component, kind, command, isDefault }) => ({
            component,
            kind,
            command,
            isDefault,
          }));
          const waiting = waitingId !== null && { waiting: waitsBeside };
          return [{ app: place.path, name, components: shown, ...(problem && { problem }), ...waiting }];
        });
        return { apps, ...(nextCursor !== null && { truncated: true }) };
      },
    }),

    serverTool<AppInput & { component?: string; waitSeconds: number }>({
      name: 'app_run',
      description:
        'Runs a component of an app on the app’s computer and waits at most `waitSeconds` for it to end. A longer run continues; read its output with app_log. The run uses the version in use: if the app is given secrets or a database, or runs by itself, your changes take effect only after the user approves them.',
      access: 'act',
      role: 'editor',
      scope: 'apps:write',
      timeoutMs: longestWaitSeconds * 1_000 + marginMs,
      afterCrash: 'again',
      inputSchema: objectSchema(
        {
          app: appProperty,
          component: {
            type: 'string',
            minLength: 1,
            maxLength: 63,
            description: 'The component to run. Default: the app’s default component.',
          },
          waitSeconds: { type: 'integer', minimum: 0, maximum: longestWaitSeconds, default: 120 },
        },
        ['app'],
      ),
      async run({ component, waitSeconds, ...input }, { turn, toolCallId, signal, isGivenUp }) {
        const app = await appAt(deps, turn, input, signal);
        const { apiKeyId, scopes } = turn;
        const actor = actorOfTurn(turn);
        const cause = { id: idOfCall('run', toolCallId), trigger: 'agent', triggerKey: toolCallId } as const;
        const run = await askToRun(deps, { ...cause, app, component, actor, apiKeyId, scopes });
        void workflows.startRun(run);
        try {
          const patience = { signal, firstMs: 50, mostMs: 1_000, forMs: waitSeconds * 1_000 };
          const last = await lookUntil(
            () => getRun(database, run.id),
            (seen) => !isActive(seen),
            patience,
          );
          return { ...describe(last), ...(app.waitingId !== null && { note: waitsBeside }) };
        } catch (error) {
          if (isGivenUp()) await cancel(turn, run);
          throw error;
        }
      },
      async abandon({ turn, toolCallId }) {
        const run = await getRun(database, idOfCall('run', toolCallId)).catch(() => undefined);
        if (run !== undefined && isActive(run)) await cancel(turn, run);
      },
    }),

    serverTool<{ run: string }>({
      name: 'app_log',
      description: 'Shows the status of a run of an app, and the beginning and end of its output.',
      access: 'read',
      role: 'viewer',
      scope: 'apps:read',
      timeoutMs: 60_000,
      afterCrash: 'again',
      inputSchema: objectSchema(
        { run: { type: 'string', minLength: 1, maxLength: 80, description: 'The `run` that app_run returned.' } },
        ['run'],
      ),
      async run({ run: id }, { turn, signal }) {
        const run = await runOf(deps, turn, id);
        if (!isActive(run) || !run.isStarted) return describe(run);
        const client = await liveComputers.asIs({ spaceId: run.spaceId, computerId: run.spec.place.computerId });
        const masks = () => secrets.redactors.forSpace(run.spaceId);
        const records = maskedOutput((wanted) => client.output(processIdOf(run), wanted), masks, { signal });
        const { stdout, stderr } = await collectOutput(records, { maxBytes: shownText });
        return { ...describe(run), output: stdout + stderr };
      },
    }),
  ];

  async function cancel(turn: Turn, run: Run): Promise<void> {
    if (await askToCancel(database, run, actorOfTurn(turn))) void workflows.startRun(run);
  }
}

function describe(run: Run) {
  const { id, component, status, attempt, exitCode, endSignal, errorDetail, output } = run;
  return {
    run: id,
    component,
    status,
    attempt,
    ...(exitCode !== null && { exitCode }),
    ...(endSignal !== null && { signal: endSignal }),
    ...(errorDetail !== null && { error: errorDetail }),
    ...(output !== null && { output }),
  };
}
