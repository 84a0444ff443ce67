import { execFile, spawn } from 'node:child_process'
import { access, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const folder = fileURLToPath(new URL('../../peers/', import.meta.url))
const modules = join(folder, 'node_modules')
// Written last: an installation that was interrupted has none.
const stamp = join(modules, '.installed-lock')

export interface Peers {
  /** The Node that runs every contender. */
  readonly node: string
  readonly nodeVersion: string
  /** By the name of the package. */
  readonly versions: Readonly<Record<string, string>>
}

/** Installs them on the first run, and again when the lock file has changed. */
export async function installPeers(tell: (line: string) => void, signal: AbortSignal): Promise<Peers> {
  const lock = await readFile(join(folder, 'package-lock.json'), 'utf8')
  const installed = await readFile(stamp, 'utf8').catch(() => null)
  if (installed !== lock) {
    tell('installing the peers and their Node into benchmarks/peers (once; some 225 MB) …')
    await npmInstall(signal)
    await writeFile(stamp, lock)
  }
  const { dependencies } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  const node = await findNode()
  const { stdout } = await promisify(execFile)(node, ['--version'])
  return { node, nodeVersion: `Node ${stdout.trim().slice(1)}`, versions: dependencies }
}

/**
 * By the lock file, which `npm ci` would refuse: it lacks optional packages of other platforms that could not be had when it was written. Only errors are shown: the engines are
 * checked against the Node that runs npm, which is not the one that runs the peers.
 */
function npmInstall(signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const options = ['--ignore-scripts', '--no-save', '--no-audit', '--no-fund', '--loglevel=error']
    const stdio = ['ignore', 'ignore', 'inherit'] as const
    const npm = spawn('npm', ['install', ...options], { cwd: folder, stdio: [...stdio], signal })
    npm.once('error', reject)
    npm.once('exit', (code) =>
      code === 0 ? resolve() : reject(new Error(`npm install ended with code ${code}`)),
    )
  })
}

/** The one from npm where there is one for this machine, else our own if it is new enough for all of them. */
async function findNode(): Promise<string> {
  const node = join(modules, `node-${process.platform}-${process.arch}`, 'bin', 'node')
  if (await isThere(node)) return node
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > 22 || (major === 22 && minor >= 18)) return process.execPath
  const here = `${process.platform}-${process.arch}`
  throw new Error(`graphile-worker needs Node 22.18; npm has none for ${here}: run this with a newer one`)
}

function isThere(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  )
}
