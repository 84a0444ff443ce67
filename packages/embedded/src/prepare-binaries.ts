import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Account } from './account.ts'
import { reachableCopy } from './copy-binaries.ts'
import { restoreExecutePermission, restoreLinks } from './repair-package.ts'

export interface Binaries {
  readonly folder: string
  readonly major: number
  readonly env: NodeJS.ProcessEnv
}

export type BinariesSource =
  | { readonly kind: 'folder'; readonly folder: string }
  | { readonly kind: 'package'; readonly root: string }

interface Surroundings {
  readonly account: Account
  /** A directory the account may enter, for what has to be made for this start only. */
  readonly scratch: string
}

const executable = process.platform === 'win32' ? '.exe' : ''
// The launcher reads messages of the server, so they have to be in English whatever the machine speaks.
const environment: NodeJS.ProcessEnv = { ...process.env, LC_ALL: 'C' }

export async function prepareBinaries(source: BinariesSource, surroundings: Surroundings): Promise<Binaries> {
  if (source.kind === 'folder') return withMajor(source.folder, environment, surroundings)
  try {
    return await preparePackage(source.root, surroundings)
  } catch (error) {
    if (!isDenied(error)) throw error
    return preparePackage(await reachableCopy(source.root), surroundings)
  }
}

export function program(binaries: Pick<Binaries, 'folder'>, name: 'initdb' | 'postgres'): string {
  return join(binaries.folder, name + executable)
}

async function preparePackage(root: string, surroundings: Surroundings): Promise<Binaries> {
  await restoreExecutePermission(root)
  const libraryPath = await restoreLinks(root, surroundings.scratch)
  return withMajor(join(root, 'native', 'bin'), { ...environment, ...libraryPath }, surroundings)
}

/** Asking for the version is also the one honest test that the account can reach, run and link the binaries. */
async function withMajor(
  folder: string,
  env: NodeJS.ProcessEnv,
  surroundings: Surroundings,
): Promise<Binaries> {
  const { account, scratch } = surroundings
  const options = { ...account, cwd: scratch, env }
  const { stdout } = await promisify(execFile)(program({ folder }, 'postgres'), ['--version'], options)
  const major = /\d+/.exec(stdout)?.[0]
  if (major === undefined) throw new Error(`could not read a PostgreSQL version from "${stdout}"`)
  return { folder, env, major: Number(major) }
}

function isDenied(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code, stderr } = error as Error & { code?: unknown; stderr?: string }
  // The loader reports a library it may not read on stderr, and exits.
  return ['EACCES', 'EPERM', 'EROFS'].includes(String(code)) || (stderr ?? '').includes('Permission denied')
}
