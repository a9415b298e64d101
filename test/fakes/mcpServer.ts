import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export interface FakeMcpServer {
  url: string;
  port: number;
  /** How often a tool ran. */
  runsOf(tool: string): Promise<number>;
  /** Sets how the server treats requests from now on. */
  become(mode: 'serve' | 'refuse' | 'hang' | 'flood' | 'reword'): Promise<void>;
  stop(): Promise<void>;
}

export async function startMcpServer(token: string): Promise<FakeMcpServer> {
  const program = join(import.meta.dirname, 'mcpServerProcess.ts');
  const child = spawn(process.execPath, [program, token], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const port = Number(line);
  const control = async (query = '') =>
    (await (await fetch(`http://127.0.0.1:${port}/fake${query}`)).json()) as Record<string, number>;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    port,
    runsOf: async (tool) => (await control())[tool] ?? 0,
    become: async (mode) => void (await control(`?mode=${mode}`)),
    async stop() {
      child.stdin.end();
      await once(child, 'exit');
    },
  };
}
