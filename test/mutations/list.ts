/**
 * Faults that the tests must notice, one for each promise of Atrium. A test that becomes faster or shorter must still
 * fail when its fault is there. `npm run mutations` makes one fault after another and runs its test.
 */
export interface Mutation {
  /** The fault in a sentence. */
  name: string;
  /** The product's file that has the fault. */
  file: string;
  /** The text that the fault replaces. The file has it exactly once. */
  piece: string;
  replacement: string;
  /** The test file that must fail. */
  caughtBy: string;
}

export const mutations: readonly Mutation[] = [
  {
    name: 'A viewer’s computer may change the drive',
    file: 'models/computers/driveAuthority.ts',
    piece: "return role === 'viewer' ? 'read' : 'write';",
    replacement: "return 'write';",
    caughtBy: 'test/activities/computers/driveBackend.test.ts',
  },
  {
    name: 'A program’s content replaces one that somebody else has written meanwhile',
    file: 'models/drive/writeFile.ts',
    piece: ' : item.version !== known?.version;',
    replacement: ' : false;',
    caughtBy: 'test/activities/computers/driveBackend.test.ts',
  },
  {
    name: 'A computer sees the files of threads among the changes of its drive',
    file: 'activities/computers/drives/driveBackend.ts',
    piece: 'place.containerId === driveContainerId && !item.isRoot',
    replacement: '!item.isRoot',
    caughtBy: 'test/activities/computers/driveBackend.test.ts',
  },
  {
    name: 'A folder that a program has removed comes back without its files',
    file: 'models/drive/changes.ts',
    piece: 'if (change.removedSince !== undefined) await',
    replacement: 'if (false) await',
    caughtBy: 'test/activities/computers/driveBackend.test.ts',
  },
  {
    name: 'A folder takes along to the trash what others have removed from it',
    file: 'models/drive/takeAlong.ts',
    piece: 'AND trashed_by = ? AND trashed_at >= ?',
    replacement: 'AND ? IS NOT NULL AND trashed_at >= ?',
    caughtBy: 'test/activities/computers/driveBackend.test.ts',
  },
  {
    name: 'The refusal of one small file of a request fails those beside it',
    file: 'models/drive/writeTogether.ts',
    piece: 'if (files.length === 1) return',
    replacement: 'if (files.length >= 1) return',
    caughtBy: 'test/activities/computers/driveBackend.test.ts',
  },
  {
    name: 'A repeated request of a killed program makes a copy beside the file',
    file: 'models/drive/writeFile.ts',
    piece: 'if (changed === undefined || present <= changed + 1) return false;',
    replacement: 'if (changed !== undefined) return false;',
    caughtBy: 'test/activities/computers/driveBackend.test.ts',
  },
  {
    name: 'A daemon goes on with the revisions of the time before a restore',
    file: 'activities/computers/drives/driveBackend.ts',
    piece: 'isOther ? future : after',
    replacement: 'after',
    caughtBy: 'test/activities/computers/driveBackend.test.ts',
  },
  {
    name: 'A purge of items is not noted in the feed of their drive',
    file: 'models/drive/purgeItems.ts',
    piece: 'await Drive.forgetUpTo(tx, spaceId, latest);',
    replacement: 'await Drive.forgetUpTo(tx, spaceId, 0);',
    caughtBy: 'test/api/drive/feed.test.ts',
  },
  {
    name: 'A save becomes the head although another one has become it meanwhile',
    file: 'models/computers/saves.ts',
    piece: "role?.as === 'head' && computer?.homeSaveId !== save.replacesId",
    replacement: 'false',
    caughtBy: 'test/models/computers/saves.test.ts',
  },
  {
    name: 'A computer is placed on a host that has still an old home of it',
    file: 'models/computers/placing.ts',
    piece: ' && !host.hasRemains',
    replacement: '',
    caughtBy: 'test/models/computers/leaving.test.ts',
  },
  {
    name: 'A save is removed although a snapshot names it',
    file: 'models/computers/saveRows.ts',
    piece: 'OR EXISTS (SELECT 1 FROM computer_snapshots n WHERE n.save_id = s.id)',
    replacement: '',
    caughtBy: 'test/models/computers/saves.test.ts',
  },
  {
    name: 'A restore does not keep the home that it replaces',
    file: 'models/computers/restoring.ts',
    piece: 'const source = await keepHead(tx, computer);',
    replacement: 'const source = await sourceOf(tx, computer);',
    caughtBy: 'test/models/computers/restoring.test.ts',
  },
  {
    name: 'The system of a computer is another after its host was lost than what its head has',
    file: 'models/computers/leaving.ts',
    piece: '  await followHead(tx, computer);',
    replacement: '',
    caughtBy: 'test/models/computers/newSystem.test.ts',
  },
  {
    name: 'A build keeps what a step has made although its computer was started anew meanwhile',
    file: 'models/environments/builds/savedSteps.ts',
    piece: ' || builder.generation !== step.generation',
    replacement: '',
    caughtBy: 'test/models/environments/builds.test.ts',
  },
  {
    name: 'A build takes the result of a step with another user for its own',
    file: 'models/environments/steps.ts',
    piece: ', workdir, user]);',
    replacement: ', workdir]);',
    caughtBy: 'test/models/environments/steps.test.ts',
  },
  {
    name: 'A save is removed although a step of an environment is kept as it',
    file: 'models/computers/saveRows.ts',
    piece: 'OR EXISTS (SELECT 1 FROM environment_layers l WHERE l.save_id = s.id)',
    replacement: '',
    caughtBy: 'test/models/environments/builds.test.ts',
  },
  {
    name: 'A snapshot takes an earlier save as the home of now',
    file: 'activities/computers/homeSaves.ts',
    piece: 'left > 0 && (await this.#isUnsaved(computerId, signal))',
    replacement: 'left > 1',
    caughtBy: 'test/api/computers/snapshots.test.ts',
  },
  {
    name: 'A host that is cut off lets its computers run',
    file: 'activities/computers/cutOff.ts',
    piece: 'await host.pause(computerId);',
    replacement: '',
    caughtBy: 'test/api/computers/cutOffHost.test.ts',
  },
  {
    name: "A turn's end is written without its fence",
    file: 'models/chat/endTurn.ts',
    piece: ' || turn.writerEpoch !== step.epoch)',
    replacement: ')',
    caughtBy: 'test/activities/chat/lastStep.test.ts',
  },
  {
    name: 'Two different requests share an Idempotency-Key',
    file: 'models/operations/idempotency.ts',
    piece: 'if (this.requestHash.equals(requestHash)) return;',
    replacement: 'if (this.requestHash.length === requestHash.length) return;',
    caughtBy: 'test/api/git/credentials.test.ts',
  },
  {
    name: 'A space removes the git credential of another space',
    file: 'models/git/credentials.ts',
    piece: 'FROM git_credentials WHERE id = ? AND space_id = ? FOR UPDATE',
    replacement: 'FROM git_credentials WHERE id = ? FOR UPDATE',
    caughtBy: 'test/api/git/credentials.test.ts',
  },
  {
    name: 'An editor may do what only owners may',
    file: 'api/frame/auth/authorizeSpace.ts',
    piece: 'if (!isAtLeast(access.role, minimumRole)) {',
    replacement: "if (!isAtLeast(access.role, minimumRole === 'owner' ? 'editor' : minimumRole)) {",
    caughtBy: 'test/api/identity/members.test.ts',
  },
  {
    name: 'The database accepts an outbox item twice',
    file: 'models/chat/schema.ts',
    piece: 'UNIQUE KEY turns_outbox (user_id, outbox_item_id)',
    replacement: 'KEY turns_outbox (user_id, outbox_item_id)',
    caughtBy: 'test/api/chat/once.test.ts',
  },
  {
    name: 'The hold of a settled call is released once more',
    file: 'models/billing/holds.ts',
    piece: "if (hold?.status !== 'open') return false;",
    replacement: 'if (hold === undefined) return false;',
    caughtBy: 'test/models/billing/ledger.test.ts',
  },
  {
    name: 'A webhook with a wrong signature is accepted',
    file: 'integrations/webhooks/standardWebhooks.ts',
    piece: 'one.length === other.length && timingSafeEqual(one, other)',
    replacement: 'one.length === other.length',
    caughtBy: 'test/integrations/webhooks/standardWebhooks.test.ts',
  },
  {
    name: 'A stream that resumes by Last-Event-ID repeats the last chunk',
    file: 'api/chat/routes.ts',
    piece: '? Number(header) : -1);',
    replacement: '? Math.max(0, Number(header) - 1) : -1);',
    caughtBy: 'test/chaos/resume.test.ts',
  },
  {
    name: 'A reader who begins in the middle of the output sees half of a secret',
    file: 'integrations/computers/output/maskedOutput.ts',
    piece: 'known.isEmpty ? after : Math.max(0, after - lookbackBytes);',
    replacement: 'after;',
    caughtBy: 'test/integrations/computers/maskedOutput.test.ts',
  },
  {
    name: 'A new file has its name on the disk before the disk has its content',
    file: 'disk/durable.ts',
    piece: 'await handle.writeFile(data);\n      await handle.sync();',
    replacement: 'await handle.writeFile(data);',
    caughtBy: 'test/disk/durable.test.ts',
  },
  {
    name: 'Damaged content passes as whole',
    file: 'integrations/storage/checkedContent.ts',
    piece: "if (sha256 !== null && !this.#hash.digest().equals(sha256)) throw damageError('damaged');",
    replacement: '',
    caughtBy: 'test/activities/drive/sweepContents.test.ts',
  },
  {
    name: 'A process that still works lets its lease run out',
    file: 'activities/chat/stepHolds.ts',
    piece: 'this.#renewing.start();',
    replacement: '',
    caughtBy: 'test/activities/chat/stepHolds.test.ts',
  },
  {
    name: 'A sweep that has used up its time forgets where it stopped',
    file: 'activities/sweepEach.ts',
    piece: 'positions?.set(list, { id: after.id, since: after.since });',
    replacement: '',
    caughtBy: 'test/activities/sweepTogether.test.ts',
  },
  {
    name: 'Retention deletes the steps of a turn that has not ended',
    file: 'models/chat/oldTurns.ts',
    piece: 'return (rows[0]?.id as string | null | undefined) ?? bound;',
    replacement: 'return bound;',
    caughtBy: 'test/models/retention.test.ts',
  },
  {
    name: 'A version of an app needs no approval if one of its authors has the rights',
    file: 'models/apps/versionRules.ts',
    piece: 'authors.some((author) => author.userId === null',
    replacement: 'authors.every((author) => author.userId === null',
    caughtBy: 'test/models/apps/orderedChanges.test.ts',
  },
  {
    name: 'A path in the drive may contain ".."',
    file: 'models/drive/names.ts',
    piece: "if (name === '.' || name === '..') return",
    replacement: "if (name === '.') return",
    caughtBy: 'test/api/drive/threadFiles.test.ts',
  },
  {
    name: 'Each API key of a user has a rate limit of its own',
    file: 'api/frame/middleware/rateLimits.ts',
    piece: 'await take(callers, req.caller.userId, res);',
    replacement: "await take(callers, req.get('authorization') ?? '', res);",
    caughtBy: 'test/api/frame/rateLimits.test.ts',
  },
  {
    name: 'A backup lacks the objects that were given up while it was made',
    file: 'models/drive/objectsForBackup.ts',
    piece: "object_key > ? AND state <> 'arriving'",
    replacement: "object_key > ? AND state = 'kept'",
    caughtBy: 'test/backup/objects.test.ts',
  },
  {
    name: 'A restored installation delivers webhooks before an operator resumes it',
    file: 'activities/webhooks/deliverWebhooks.ts',
    piece: "if (await isQuiet(database)) return { do: 'watch', waitMs: quietLookMs };",
    replacement: '',
    caughtBy: 'test/activities/quiet.test.ts',
  },
  {
    name: 'An automatic top-up that is retried charges the card twice',
    file: 'integrations/billing/stripe.ts',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: this is source text
    piece: 'idempotencyKey: `charge:${checkoutId}`',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: this is source text
    replacement: 'idempotencyKey: `charge:${checkoutId}:${Date.now()}`',
    caughtBy: 'test/activities/billing/stripe.test.ts',
  },
  {
    name: 'A page of a list begins with the last row of the page before',
    file: 'models/database/pages.ts',
    piece: 'const past = { [first]: { [beyond]: value } };',
    replacement: 'const past = { [first]: { [bound]: value } };',
    caughtBy: 'test/api/identity/keys.test.ts',
  },
  {
    name: 'The newest message of a thread overtakes those that wait',
    file: 'models/chat/turn.ts',
    piece:
      "status: 'queued', ordinal: { [Op.gt]: afterOrdinal } },\n        order: [['ordinal', 'ASC']],\n        transaction: tx,",
    replacement: "status: 'queued' },\n        order: [['ordinal', 'DESC']],\n        transaction: tx,",
    caughtBy: 'test/api/chat/queue.test.ts',
  },
  {
    name: 'A branch that could be fast-forwarded gets a merge commit',
    file: 'integrations/git/mirror/merge.ts',
    piece: 'if (await isIn(git, ours, theirs)) return { commit: theirs, fastForward: true };',
    replacement: '',
    caughtBy: 'test/integrations/git/merge.test.ts',
  },
  {
    name: 'A sign-in code works after its expiry',
    file: 'models/identity/authCodes.ts',
    piece: 'usedAt: null, expiresAt: { [Op.gt]: now } }',
    replacement: 'usedAt: null }',
    caughtBy: 'test/api/identity/auth.test.ts',
  },
  {
    name: 'A link to a thread outlives the API key that made it',
    file: 'api/chat/shareRoutes.ts',
    piece: "if (share.apiKeyId !== null && !(await identity.keys.isValid(share.apiKeyId))) throw notFound('link');",
    replacement: '',
    caughtBy: 'test/api/chat/shares.test.ts',
  },
  {
    name: 'The requests of users reach private addresses',
    file: 'integrations/egress/addresses.ts',
    piece: "if (range === 'unicast') return undefined;",
    replacement: "if (range === 'unicast' || range === 'private') return undefined;",
    caughtBy: 'test/integrations/egressAddresses.test.ts',
  },
  {
    name: 'A webhook is retried before its receiver wants it',
    file: 'models/webhooks/retries.ts',
    piece: 'return Math.max(Math.round(delayMs * (1 + random * mostJitter)), retryAfterMs);',
    replacement: 'return Math.round(delayMs * (1 + random * mostJitter));',
    caughtBy: 'test/models/webhooks/retries.test.ts',
  },
  {
    name: 'The late end of an earlier start changes a computer that was started again',
    file: 'models/computers/ends.ts',
    piece: 'if (computer === undefined || computer.generation !== generation) return;',
    replacement: 'if (computer === undefined) return;',
    caughtBy: 'test/models/computers/steps.test.ts',
  },
  {
    name: 'The audit log does not tell that an API key was revoked',
    file: 'models/identity/apiKeys.ts',
    piece: "for (const { id } of found) await appendAuditOfUser(tx, userId, actor, 'key.revoked', id);",
    replacement: '',
    caughtBy: 'test/api/identity/audit.test.ts',
  },
  {
    name: 'The log shows cookies',
    file: 'telemetry/logger.ts',
    piece: "['authorization', 'cookie', 'set-cookie']",
    replacement: "['authorization', 'set-cookie']",
    caughtBy: 'test/telemetry/logger.test.ts',
  },
  {
    name: 'A host does not see what was written to a home since its last save',
    file: 'integrations/computers/host/saves/btrfs.ts',
    piece: 'await syncHomes(homes);',
    replacement: '',
    caughtBy: 'test/integrations/computers/saves.test.ts',
  },
  {
    name: 'A computer starts with an empty home after a fill that was cut off',
    file: 'integrations/computers/host/life/start.ts',
    piece: 'if (record.filling === true) throw',
    replacement: 'if (record.removing === true) throw',
    caughtBy: 'test/integrations/computers/fills.test.ts',
  },
  {
    name: 'A host removes a snapshot that another computer uses',
    file: 'integrations/computers/host/saves/snapshots.ts',
    piece: 'if (!isUsed) await',
    replacement: 'await',
    caughtBy: 'test/integrations/computers/sharedSaves.test.ts',
  },
  {
    name: 'A computer answers a write before the content of the file is on the disk',
    file: 'integrations/computers/agent/write.go',
    piece: 'if err := fsync(w.file); err != nil {',
    replacement: 'if err := error(nil); err != nil {',
    caughtBy: 'test/integrations/computers/agent.test.ts',
  },
  {
    name: 'Set-user-ID bits of a home are lost when it changes its user',
    file: 'integrations/computers/host/disks/watched.ts',
    piece: 'if (paths.length > 0) await changeModes',
    replacement: 'if (paths.length < 0) await changeModes',
    caughtBy: 'test/integrations/computers/tarSaves.test.ts',
  },
  {
    name: 'Space for one more is looked for without the size of that one',
    file: 'models/computers/quotas.ts',
    piece: 'if (used + more <= limit) return;',
    replacement: 'if (used <= limit) return;',
    caughtBy: 'test/api/computers/quotas.test.ts',
  },
  {
    name: 'A computer starts on a host without its labels',
    file: 'models/computers/placing.ts',
    piece: 'runs(host, driver) && hasLabels(host, computer.labels)',
    replacement: 'runs(host, driver)',
    caughtBy: 'test/models/computers/labels.test.ts',
  },
];

/** The file's source with the fault. Undefined if the source does not have the piece exactly once. */
export function mutated(source: string, { piece, replacement }: Mutation): string | undefined {
  const [before, after, ...more] = source.split(piece);
  return before === undefined || after === undefined || more.length > 0 ? undefined : before + replacement + after;
}
