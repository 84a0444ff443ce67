// Programs that a test runs to their end. Never by spawnSync: a worker that stands still for a minute no longer answers the test runner, which then calls the run failed.
import { spawn } from 'node:child_process'
import { once } from 'node:events'

export interface Command {
  readonly args: readonly string[]
  readonly cwd: string
  readonly env?: Readonly<Record<string, string | undefined>>
}

export interface Ran {
  /** Null if it was killed, as it is when its time is over. */
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Longer than any limit within such a program, and shorter than that of the tests that run one: what it has printed is shown. */
export const commandLimitMs = 240_000

/** Resolves with how it ended, whatever that is; rejects if it could not be started. */
export async function runCommand(command: string, { args, cwd, env = process.env }: Command): Promise<Ran> {
  const child = spawn(command, args, { cwd, env, timeout: commandLimitMs, stdio: ['ignore', 'pipe', 'pipe'] })
  const printed = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      printed[name] += text
    })
  }
  const [status] = (await once(child, 'close')) as [number | null]
  return { status, ...printed }
}
