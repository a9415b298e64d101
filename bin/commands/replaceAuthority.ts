import type { Command } from 'commander';
import { createAuthority } from '../../integrations/egress/certificates.ts';
import { createEgressAuthorities } from '../../models/egress/authorities.ts';
import { openEnvelope } from '../../models/identity/index.ts';
import { print } from '../support/answer.ts';
import { withDatabase } from '../support/installation.ts';

/** `atrium replace-authority`: for when the key of the authority that computers trust may have leaked. */
export function addReplaceAuthority(program: Command): void {
  program
    .command('replace-authority')
    .description('withdraw the certificate authority that computers trust, and make another')
    .option('--json', 'answer in JSON')
    .action(async (_options: unknown, command: Command) => {
      const trusted = await withDatabase(async (database, config) => {
        const authorities = createEgressAuthorities(database, await openEnvelope(database, config), createAuthority);
        await authorities.replace();
        return authorities.trusted();
      });
      const text = 'Computers trust a new authority. Restart the processes that run hosts, and then the computers.';
      print(command, { json: { trusted: trusted.length }, text });
    });
}
