import type { HostClient } from '../../../integrations/computers/hostClient.ts';
import type { ComputerRef, LiveComputers } from '../../../integrations/computers/liveComputers.ts';
import { signatureOf } from '../../../integrations/git/rules/person.ts';
import type { TargetOfCall } from '../../../models/chat/toolCall.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import type { Computers } from '../../../models/computers/computers.ts';
import { defaultComputer } from '../../../models/computers/defaultComputer.ts';
import type { Identity } from '../../../models/identity/index.ts';
import type { SecretStore } from '../../../models/secrets/index.ts';
import type { CommonDeps } from '../../deps.ts';
import { actorOfTurn } from '../calls.ts';

export interface ComputerToolDeps extends Pick<CommonDeps, 'config' | 'database' | 'workflows'> {
  computers: Computers;
  liveComputers: LiveComputers;
  identity: Pick<Identity, 'users'>;
  secrets: Pick<SecretStore, 'redactors'>;
}

export interface ComputerInput {
  computerId?: string;
}

export interface PathInput extends ComputerInput {
  path: string;
}

export const computerProperty = {
  type: 'string',
  minLength: 1,
  maxLength: 80,
  description: 'The id of a computer of the space. Default: the space’s default computer.',
};

export const pathProperty = {
  type: 'string',
  minLength: 1,
  maxLength: 4_096,
  pattern: '^[^\\u0000]*$',
  description: 'An absolute path, or a path relative to the home. The drive of the space is at drive/ in the home.',
};

/** The computer that a call names. It is always a computer of the turn's own space. */
async function refOf({ database }: ComputerToolDeps, turn: Turn, { computerId }: ComputerInput): Promise<ComputerRef> {
  const { spaceId } = turn;
  return { spaceId, computerId: computerId ?? (await defaultComputer(database, spaceId)).id };
}

/** The identity of a call's computer: a space gets another default computer when its own is deleted. */
export function computerOfCall(deps: ComputerToolDeps) {
  return async (input: ComputerInput, turn: Turn): Promise<TargetOfCall> => ({
    identity: (await refOf(deps, turn, input)).computerId,
  });
}

export async function awake(deps: ComputerToolDeps, turn: Turn, input: ComputerInput): Promise<HostClient> {
  return deps.liveComputers.awake(await refOf(deps, turn, input), actorOfTurn(turn));
}

/** The turn's user is the author of the commits made in it. */
export async function signatureFor({ identity }: ComputerToolDeps, { userId }: Turn): Promise<Record<string, string>> {
  return signatureOf((await identity.users.byId(userId)) ?? undefined);
}

/** Returns the computer in any state, without waking it. */
export async function asIs(deps: ComputerToolDeps, turn: Turn, input: ComputerInput): Promise<HostClient> {
  return deps.liveComputers.asIs(await refOf(deps, turn, input));
}

/** Like {@link asIs}, for requests that only a running computer can answer. */
export async function unpaused(deps: ComputerToolDeps, turn: Turn, input: ComputerInput): Promise<HostClient> {
  return deps.liveComputers.unpaused(await refOf(deps, turn, input));
}
