import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Casting, Commands, Report } from '../contenders/protocol.ts'

/** What a contender's process runs, and on which Node. */
export interface Program {
  readonly node: string
  readonly script: string
}

export function contenderProgram(node: string): Program {
  return { node, script: fileURLToPath(new URL('../contenders/process.js', import.meta.url)) }
}

/** The longest scenario takes minutes; a contender that hangs must not hold up the others for ever. */
const patienceMs = 900_000

/** A contender in a process of its own. */
export interface Player extends AsyncDisposable {
  /** How many messages it has handled, as far as it has told. */
  readonly handled: number
  tell<Name extends keyof Commands>(
    name: Name,
    input: Commands[Name]['input'],
  ): Promise<Commands[Name]['output']>
  /** Ends it without a word, as a crash would. */
  kill(): Promise<void>
}

/** When the signal aborts, its process is killed, and whatever it was told fails. */
export async function startPlayer(
  { node, script }: Program,
  casting: Casting,
  signal: AbortSignal,
): Promise<Player> {
  const { NODE_OPTIONS: _, ...env } = process.env
  const child = fork(script, [JSON.stringify(casting)], {
    execPath: node,
    execArgv: [],
    env,
    signal,
    killSignal: 'SIGKILL',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const waiting = new Map<number, { resolve: (output: never) => void; reject: (error: Error) => void }>()
  const errors = lastLines(child)
  let handled = 0
  let sent = 0
  const ready = new Promise<void>((resolve, reject) => {
    waiting.set(0, { resolve, reject })
    // Also that it was aborted, at any time: without a listener that would end this process.
    child.on('error', reject)
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  void exited.then(() => {
    const error = new Error(`the process of ${casting.name} has ended: ${errors()}`)
    for (const { reject } of waiting.values()) reject(error)
  })
  child.on('message', (report: Report) => {
    if (report.kind === 'progress') {
      handled = report.handled
      return
    }
    const id = report.kind === 'ready' ? 0 : report.id
    const answer = waiting.get(id)
    waiting.delete(id)
    if (report.kind === 'failure') answer?.reject(new Error(report.error))
    else answer?.resolve((report.kind === 'answer' ? report.output : undefined) as never)
  })
  await ready
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL')
    await exited
  }
  return {
    get handled() {
      return handled
    },
    tell(name, input) {
      const id = ++sent
      return new Promise((resolve, reject) => {
        const late = (): void => reject(new Error(`${casting.name} has not answered \`${name}\` in time`))
        // It does not keep this process running, so nobody has to clear it.
        setTimeout(late, patienceMs).unref()
        waiting.set(id, { resolve, reject })
        child.send({ id, name, input })
      })
    },
    kill,
    [Symbol.asyncDispose]: kill,
  }
}

/** What it wrote to its standard error, for the case that it dies. */
function lastLines(child: ChildProcess): () => string {
  let text = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    text = `${text}${chunk}`.slice(-2_000)
  })
  return () => text.trim()
}
