import { type ChildProcess, fork } from 'node:child_process'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { Binaries } from './usable-binaries.ts'

export interface EmbeddedPostgres extends AsyncDisposable {
  /** `postgres://postgres@127.0.0.1:PORT/postgres`. No password: every user of this machine can connect. */
  readonly url: string
  readonly dataDirectory: string
  /** Disconnects every client, stops the server and removes its data. */
  stop(): Promise<void>
}

export interface ServerOrder {
  readonly binaries: Binaries
  readonly settings: Readonly<Record<string, string>>
  /** Tried in this order, before the operating system is asked for a free one. */
  readonly ports: readonly number[]
}

type Report =
  | { readonly kind: 'ready'; readonly port: number; readonly dataDirectory: string }
  | { readonly kind: 'failed'; readonly reason: string }

// The same file from src/ and from dist/.
const program = fileURLToPath(new URL('../src/supervisor-process.mjs', import.meta.url))

export async function superviseServer(order: ServerOrder): Promise<EmbeddedPostgres> {
  const child = forkSupervisor(order)
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const stop = async () => {
    // Somebody waits for the end now, so the wait has to keep this process running.
    child.ref()
    if (child.connected) child.disconnect()
    await exited
  }

  const report = await reportOf(child)
  if (report.kind === 'failed') {
    await stop()
    throw new Error(report.reason)
  }
  // From now on the supervisor alone does not keep this process running.
  child.unref()
  child.channel?.unref()
  const url = `postgres://postgres@127.0.0.1:${report.port}/postgres`
  return { url, dataDirectory: report.dataDirectory, stop, [Symbol.asyncDispose]: stop }
}

function forkSupervisor(order: ServerOrder): ChildProcess {
  // NODE_OPTIONS is for the application: a debugger port or a loader hook has no business in the supervisor.
  const { NODE_OPTIONS: _, ...env } = process.env
  return fork(program, [JSON.stringify(order)], {
    cwd: tmpdir(),
    // In a session of its own, or the Ctrl-C meant for the application would reach it too.
    detached: true,
    // It reads messages of the server, so they have to be in English whatever the machine speaks.
    env: { ...env, LC_ALL: 'C' },
    execArgv: [],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
}

/** The one message a supervisor sends. */
function reportOf(child: ChildProcess): Promise<Report> {
  return new Promise((resolve, reject) => {
    child.once('message', (message) => resolve(message as Report))
    child.once('exit', () => reject(new Error('the process that supervises PostgreSQL ended unexpectedly')))
    // For good: a late one, from a supervisor that died, must not become an uncaught exception of the application.
    child.on('error', reject)
  })
}
