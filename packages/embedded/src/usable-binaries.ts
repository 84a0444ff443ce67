import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { keepCopy } from './keep-copy.ts'
import { repairPackage } from './repair-package.ts'

export interface Binaries {
  /** The one with `initdb` and `postgres`. */
  readonly folder: string
  readonly major: number
  /** Who can run them; empty means ourselves. */
  readonly account: { readonly uid?: number; readonly gid?: number }
}

// PostgreSQL refuses to run as root, so root gives its rights up for it: to "nobody" of Linux and macOS, by number, so
// that no user has to exist or be created. A file system does not ask whether a number has a name.
const account = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

/** The package as it is, else repaired, else a repaired copy of it: the first that the account can run. */
export async function usableBinaries(root: string): Promise<Binaries> {
  try {
    return await tryBinaries(await repairPackage(root))
  } catch (error) {
    // A program or its loader is missing: it would be missing from a copy as well.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw error
    return tryBinaries(await repairPackage(await keepCopy(root)))
  }
}

/** Asking for the version is also the one honest test that the account can reach, run and link the binaries. */
export async function tryBinaries(folder: string): Promise<Binaries> {
  const program = join(folder, 'postgres')
  const { stdout } = await promisify(execFile)(program, ['--version'], { ...account, cwd: folder })
  const major = /\d+/.exec(stdout)?.[0]
  if (major === undefined) throw new Error(`could not read a PostgreSQL version from "${stdout}"`)
  return { folder, major: Number(major), account }
}
