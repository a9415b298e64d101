import type { Command } from 'commander';
import { rotateKeys } from '../../models/identity/index.ts';
import { columns, print } from '../support/answer.ts';
import { withDatabase } from '../support/installation.ts';

/** `atrium rotate-key`: replaces the keys of sealed data while Atrium runs. Safe to interrupt and to run again. */
export function addRotateKey(program: Command): void {
  program
    .command('rotate-key')
    .description('give every space a new data key, and wrap all of them under the present (or a new) master key')
    .option('--json', 'answer in JSON')
    .action(async (_options: unknown, command: Command) => {
      const report = await withDatabase(rotateKeys);
      const text = columns([
        ['Master key', report.masterKeyId],
        ['New data keys', String(report.rotated)],
        ['Wrapped again', String(report.rewrapped)],
      ]);
      print(command, { json: report, text });
    });
}
