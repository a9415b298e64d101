import type { RowDataPacket } from 'mysql2/promise';
import { indexTexts } from '../test/builders/fullSpace.ts';
import { buildProduct, fake } from '../test/builders/product.ts';
import { startTestStack, stopTestStack } from '../test/support/testStack.ts';

/**
 * Measures what turns take in the database: `npx node bench/turnSize.ts`. Answers real turns first, then measures the
 * growth of each table with its indexes.
 */
const turns = Number(process.env.BENCH_TURNS ?? 2_000);
const atOnce = 16;
const turnsPerThread = 10;
const tokens = 150;

await startTestStack();
try {
  const product = await buildProduct({ ATRIUM_SWEEP_INTERVAL_SECONDS: '3600' });
  try {
    const { pool } = product.environment.database;
    const user = await product.user();
    const before = await sizes();
    let begun = 0;
    const lane = async () => {
      for (let threadId: string | undefined, inThread = 0; begun < turns; inThread++) {
        begun++;
        const content = fake(
          { tokens, intervalMs: 5 },
          `What should we say about point ${begun} of the plan, and to whom?`,
        );
        const asked = await user.ask({
          content,
          modelId: 'fake-1',
          ...(inThread % turnsPerThread !== 0 && { threadId }),
        });
        ({ threadId } = asked);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, lane));
    // Usually the sweeper does this, but it does not run here.
    await indexTexts(product.environment.database);
    const after = await sizes();
    let total = 0;
    for (const [table, bytes] of after) {
      const grown = (bytes - (before.get(table) ?? 0)) / turns;
      total += grown;
      if (grown >= 20) console.log(`${table}: ${grown.toFixed(0)} bytes a turn`);
    }
    console.log(`${turns} turns of ${tokens} tokens: ${(total / 1_000).toFixed(2)} KB each`);

    async function sizes(): Promise<Map<string, number>> {
      const [tables] = await pool.query<RowDataPacket[]>(
        "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'",
      );
      const found = new Map<string, number>();
      for (const { name } of tables) {
        await pool.query(`ANALYZE TABLE ${name}`).catch(() => undefined);
        const [rows] = await pool.query<RowDataPacket[]>(
          'SELECT data_length + index_length AS bytes FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?',
          [name],
        );
        found.set(name as string, Number(rows[0]?.bytes ?? 0));
      }
      return found;
    }
  } finally {
    await product.close();
  }
} finally {
  await stopTestStack();
}
