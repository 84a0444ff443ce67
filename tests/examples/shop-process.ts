// The demo as a process: what it prints, how it ends, and what it leaves in a temporary folder of its own.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Collector } from '../support/signals.ts'
import { collector } from '../support/signals.ts'

export interface ShopProcess extends AsyncDisposable {
  readonly lines: Collector<string>
  kill(signal: NodeJS.Signals): void
  /** Resolves when the process has ended. */
  readonly ended: Promise<{ readonly code: number | null; readonly output: string }>
  /** The process id of the embedded server, while there is one. */
  serverPid(): Promise<number>
  /** Data directories of embedded servers that are still there. */
  dataDirectories(): Promise<string[]>
}

const program = join(import.meta.dirname, '..', '..', 'examples', 'shop', 'dist', 'main.js')

export async function startShop(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<ShopProcess> {
  const temporary = await mkdtemp(join(tmpdir(), 'shop-'))
  // The server may run under another account, and keeps its data below this folder.
  await chmod(temporary, 0o1777)
  const { DATABASE_URL: _, SHOP_SABOTAGE: __, ...inherited } = process.env
  const child = spawn(process.execPath, [program, ...args], {
    env: { ...inherited, TMPDIR: temporary, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines = collector<string>('lines of the shop')
  for (const stream of [child.stdout, child.stderr]) createInterface(stream).on('line', lines.add)
  const ended = once(child, 'close').then(([code]) => ({ code, output: lines.all.join('\n') }))
  const dataDirectories = async (): Promise<string[]> => {
    const entries = await readdir(temporary)
    return entries.filter((name) => name.startsWith('postbox-postgres-')).map((name) => join(temporary, name))
  }
  return {
    lines,
    ended,
    dataDirectories,
    kill: (signal) => child.kill(signal),
    async serverPid() {
      const [directory] = await dataDirectories()
      return Number.parseInt(await readFile(join(directory!, 'data', 'postmaster.pid'), 'utf8'), 10)
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
      await rm(temporary, { recursive: true, force: true, maxRetries: 20 })
    },
  }
}
