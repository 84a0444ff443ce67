import { type ChildProcess, fork } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Account } from './account.ts'

export interface Command {
  readonly file: string
  readonly args: readonly string[]
  readonly env: NodeJS.ProcessEnv
  /** Name of the file in the supervisor's directory that receives stdout and stderr. */
  readonly log: string
}

export interface RunningCommand {
  readonly pid: number
  /** Resolves with how it ended: `exit code 0`, `SIGINT`. */
  readonly ended: Promise<string>
  output(): Promise<string>
}

export interface Supervisor {
  /** Removed when the supervisor ends; belongs to the account the commands run under. */
  readonly directory: string
  run(command: Command): Promise<RunningCommand>
  /** From now on the supervisor alone does not keep this process running. */
  unref(): void
  stop(): Promise<void>
}

type Report =
  | { readonly kind: 'directory'; readonly directory: string }
  | { readonly kind: 'started'; readonly pid: number }
  | { readonly kind: 'ended'; readonly reason: string }

// The same file from src/ and from dist/.
const program = fileURLToPath(new URL('../src/supervisor-process.mjs', import.meta.url))

export async function startSupervisor(account: Account): Promise<Supervisor> {
  const child = forkProgram(account)
  // A failed write to a supervisor that died must not become an uncaught exception of the application.
  child.on('error', () => {})
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const { directory } = await nextReport(child, 'directory')

  let stopping: Promise<void> | undefined
  return {
    directory,
    run: (command) => run(child, directory, command),
    unref() {
      child.unref()
      child.channel?.unref()
    },
    stop() {
      stopping ??= stop(child, exited)
      return stopping
    },
  }
}

function forkProgram(account: Account): ChildProcess {
  // NODE_OPTIONS is for the application: a debugger port or a loader hook has no business in the supervisor.
  const { NODE_OPTIONS: _, ...env } = process.env
  return fork(program, [JSON.stringify(account)], {
    cwd: tmpdir(),
    // In a session of its own, or the Ctrl-C meant for the application would reach it too.
    detached: true,
    env,
    execArgv: [],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
}

async function run(child: ChildProcess, directory: string, command: Command): Promise<RunningCommand> {
  const ended = nextReport(child, 'ended').then(
    (report) => report.reason,
    (error: Error) => error.message,
  )
  const started = nextReport(child, 'started')
  child.send(command)
  const first = await Promise.race([started, ended])
  if (typeof first === 'string') throw new Error(`could not run ${command.file}: ${first}`)
  return { pid: first.pid, ended, output: () => readFile(join(directory, command.log), 'utf8') }
}

function nextReport<K extends Report['kind']>(
  child: ChildProcess,
  kind: K,
): Promise<Extract<Report, { kind: K }>> {
  const report = new Promise<Extract<Report, { kind: K }>>((resolve, reject) => {
    const onMessage = (message: unknown) => {
      const received = message as Report
      if (received.kind !== kind) return
      child.off('message', onMessage).off('exit', onExit)
      resolve(received as Extract<Report, { kind: K }>)
    }
    const onExit = () => reject(new Error('the process that supervises PostgreSQL ended unexpectedly'))
    child.on('message', onMessage).once('exit', onExit)
  })
  // Nobody may be waiting any more, for instance for the end of a server that runs until the application ends.
  report.catch(() => {})
  return report
}

async function stop(child: ChildProcess, exited: Promise<void>): Promise<void> {
  // Somebody waits for the end now, so the wait has to keep this process running.
  child.ref()
  if (child.connected) child.disconnect()
  await exited
}
