import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Machine, type MachineSettings, machineSettings } from '../builders/machines.ts';
import { localGitServer } from '../builders/repository.ts';
import { startReceiver } from '../builders/webhookReceiver.ts';
import { startFakeProvider } from '../fakes/openaiServer.ts';
import { temporaryFolder } from '../support/folders.ts';

const perThousand = (label: string, creditsPerUnit: number) => ({ label, creditsPerUnit, unit: '1K tokens' });
const pricingRates = [perThousand('Input', 1), perThousand('Output', 10)];
const models = [{ id: 'paid', provider: 'compatible', capabilities: { maxOutputTokens: 1_000 }, pricingRates }];

/** A message that the provider answers only in the test, not while an installation is recorded. */
export const slowQuestion = 'Take your time.';
const slowAnswer = { firstTokenDelayMs: 3_600_000 };

/** Other companies' servers, for the recording of an installation and for its test. */
export async function startWorld({ isRecording }: { isRecording: boolean }) {
  const provider = await startFakeProvider({
    respond: ({ body }) => (isRecording && JSON.stringify(body).includes(slowQuestion) ? slowAnswer : undefined),
  });
  const receiver = await startReceiver();
  const { server, environment } = await localGitServer();
  const modelsFile = join(temporaryFolder(), 'models.json');
  writeFileSync(modelsFile, JSON.stringify({ models }));
  return {
    provider,
    receiver,
    server,
    settingsOf: (dataDir: string): MachineSettings => ({
      ...machineSettings(dataDir, provider),
      ...(environment as Record<string, string>),
      ATRIUM_EGRESS_ALLOW_INTERNAL: `${environment.ATRIUM_EGRESS_ALLOW_INTERNAL},${receiver.host}`,
      ATRIUM_MODELS_FILE: modelsFile,
      ATRIUM_BILLING_ENFORCED: 'true',
      ATRIUM_BILLING_INITIAL_CREDITS_MAX: '100',
      ATRIUM_RATE_LIMIT_PER_MINUTE: '0',
    }),
    async close() {
      await provider.stop();
      await receiver.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

export type World = Awaited<ReturnType<typeof startWorld>>;

/** Stops a machine in order, as Ctrl-C does. */
export async function stop({ process: atrium }: Machine): Promise<void> {
  atrium.child.kill('SIGINT');
  const { code } = await atrium.exited;
  if (code !== 0) throw new Error(`Atrium ended with ${code}:\n${atrium.output()}`);
}
