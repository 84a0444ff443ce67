// Child processes that run the source of the library: bundled once per test file, started with plain node.
import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildSync } from 'esbuild'
import { afterAll, beforeAll, expect } from 'vitest'
import type { ConsumerOrder } from '../ordering/consumer-order.ts'
import { type Collector, collector, type WaitOptions } from '../support/signals.ts'
import type { Command, Report, WorkerOrder } from './protocol.ts'

export interface Child extends AsyncDisposable {
  readonly pid: number
  readonly name: string
  readonly reports: Collector<Report>
  readonly hasEnded: boolean
  /** Resolves when the process has ended, whatever it left. */
  readonly ended: Promise<Ending>
  tell(command: Command): void
  kill(signal: NodeJS.Signals): void
  /** The first report that passes, of those already there and those to come. Fails when the process ends before it. */
  until<K extends Report['kind']>(
    kind: K,
    passes?: (report: ReportOf<K>) => boolean,
    options?: WaitOptions,
  ): Promise<ReportOf<K>>
}

export type ReportOf<K extends Report['kind']> = Extract<Report, { readonly kind: K }>

export interface Ending {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly output: string
}

export interface StartOptions {
  /** Told of each report at once. */
  readonly heard?: (report: Report) => void
}

export interface Programs {
  worker(order: Partial<WorkerOrder> & Pick<WorkerOrder, 'url' | 'schema'>, options?: StartOptions): Child
  publisher(order: { readonly url: string; readonly schema: string }): Child
  consumer(order: Omit<ConsumerOrder, 'name'>): Child
}

const standard: Omit<WorkerOrder, 'url' | 'schema' | 'name'> = {
  queues: ['orders'],
  options: { concurrency: 4, prefetch: 4, pollMs: { min: 20, max: 100 } },
  waits: false,
  transacts: false,
  trap: null,
}

export interface ProgramOptions {
  /** A build of the library, as a file, that they run instead of the source. */
  readonly postbox?: string
}

/** The programs of this folder. Call it at the top of a test file: they are bundled before its first test. */
export function usePrograms({ postbox }: ProgramOptions = {}): Programs {
  let folder = ''
  const children = new Set<Child>()
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'postbox-chaos-'))
    bundle(folder, postbox)
  })
  afterAll(async () => {
    for (const child of children) await child[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })
  const start = (program: string, order: { readonly name: string }, options: StartOptions): Child => {
    const child = observe(startNode(join(folder, program), order), order.name, options)
    children.add(child)
    return child
  }
  const name = (): string => `postbox-chaos-${randomBytes(4).toString('hex')}`
  return {
    worker: (order, options = {}) =>
      start('worker-process.mjs', { ...standard, name: name(), ...order }, options),
    publisher: (order) => start('publisher-process.mjs', { ...order, name: name() }, {}),
    consumer: (order) => start('consumer-process.mjs', { ...order, name: name() }, {}),
  }
}

/** It runs, and Node has not warned it of anything. */
export async function expectSound(child: Child): Promise<void> {
  const ending = child.hasEnded ? await child.ended : null
  const warnings = child.reports.all.filter(({ kind }) => kind === 'warning')
  expect({ ending, warnings }).toEqual({ ending: null, warnings: [] })
}

/** It ends by itself when it is asked to, and had nothing to complain of. */
export async function expectEnd(child: Child): Promise<void> {
  await expectSound(child)
  child.kill('SIGTERM')
  expect(await child.ended).toEqual({ code: 0, signal: null, output: '' })
}

const programs = ['worker-process.ts', 'publisher-process.ts', '../ordering/consumer-process.ts']

function bundle(folder: string, postbox: string | undefined): void {
  buildSync({
    entryPoints: programs.map((file) => join(import.meta.dirname, file)),
    entryNames: '[name]',
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    conditions: ['postbox-source'],
    ...(postbox !== undefined && { alias: { postbox } }),
    external: ['pg-native'],
    sourcemap: 'inline',
    // pg is CommonJS and asks for modules of Node by `require`, which an ES module does not have.
    banner: {
      js: `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)`,
    },
  })
}

function startNode(program: string, order: object): ChildProcess {
  const { NODE_OPTIONS: _, ...env } = process.env
  return fork(program, [], {
    env: { ...env, CHAOS_ORDER: JSON.stringify(order) },
    execArgv: ['--unhandled-rejections=strict', '--enable-source-maps'],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
}

function observe(child: ChildProcess, name: string, { heard }: StartOptions): Child {
  const reports = collector<Report>(`reports of ${name}`)
  const output: string[] = []
  let ending: Ending | null = null
  child.on('message', (message) => {
    heard?.(message as Report)
    reports.add(message as Report)
  })
  child.on('error', (error) => output.push(String(error)))
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text) => output.push(String(text)))
  const ended = once(child, 'close').then(([code, signal]) => {
    ending = { code, signal, output: output.join('') }
    return ending
  })
  const kill = (signal: NodeJS.Signals): void => void child.kill(signal)
  return {
    pid: child.pid ?? 0,
    name,
    reports,
    get hasEnded() {
      return ending !== null
    },
    ended,
    // One that has ended is told nothing: its end is what is looked at.
    tell: (command) => void (child.connected && child.send(command, () => {})),
    kill,
    async until(kind, passes = () => true, options = {}) {
      const isIt = (report: Report): boolean => report.kind === kind && passes(report as never)
      const tooEarly = ended.then(({ code, signal, output }) => {
        throw new Error(`${name} ended (${signal ?? code}) before it reported "${kind}":\n${output}`)
      })
      tooEarly.catch(() => {})
      return (await Promise.race([reports.find(isIt, options), tooEarly])) as ReportOf<typeof kind>
    },
    async [Symbol.asyncDispose]() {
      kill('SIGKILL')
      await ended
    },
  }
}
