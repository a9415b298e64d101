import type { Command } from 'commander';
import { addBackup, addRestore } from './backup.ts';
import { addBilling } from './billing.ts';
import { addBuildGvisor } from './buildGvisor.ts';
import { addCode } from './code.ts';
import { addDoctor } from './doctor.ts';
import { addEnvironment } from './environment.ts';
import { addGit } from './git.ts';
import { addHost } from './host.ts';
import { addKey } from './key.ts';
import { addLogs } from './logs.ts';
import { addMember } from './member.ts';
import { addMigrate } from './migrate.ts';
import { addReplaceAuthority } from './replaceAuthority.ts';
import { addResume } from './resume.ts';
import { addRotateKey } from './rotateKey.ts';
import { addSession } from './session.ts';
import { addSpace } from './space.ts';
import { addStatus } from './status.ts';
import { addToken } from './token.ts';
import { addUser } from './user.ts';

/** The commands for operating an Atrium that runs, in the order of the help. */
const areas = [
  addDoctor,
  addStatus,
  addLogs,
  addMigrate,
  addToken,
  addCode,
  addUser,
  addSpace,
  addMember,
  addKey,
  addSession,
  addRotateKey,
  addReplaceAuthority,
  addHost,
  addEnvironment,
  addBuildGvisor,
  addBilling,
  addGit,
  addBackup,
  addRestore,
  addResume,
];

/** Adds every command except those that run Atrium. */
export function addOperating(program: Command): void {
  for (const add of areas) add(program);
}
