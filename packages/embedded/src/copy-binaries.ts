import { chmod, cp, lstat, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'

/**
 * The binaries where every account can reach them: node_modules below a 0700 home is closed to "nobody". The copy is
 * kept for the next start, which then need not copy 60 MB again.
 */
export async function reachableCopy(root: string): Promise<string> {
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
  const kept = join(
    tmpdir(),
    `postbox-binaries-${basename(root)}-${version}-${process.getuid?.() ?? 'windows'}`,
  )
  await refuseForeign(kept)
  if (await isComplete(root, kept)) return kept

  const fresh = await mkdtemp(`${kept}-`)
  await cp(join(root, 'native'), join(fresh, 'native'), { recursive: true, verbatimSymlinks: true })
  await openToAll(fresh)
  await replace(kept, fresh)
  return kept
}

/** The temporary folder is everybody's, and the name can be guessed: run nothing from it that another user put there. */
async function refuseForeign(folder: string): Promise<void> {
  const found = await lstat(folder).catch(() => undefined)
  if (found === undefined) return
  if (found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o022) === 0) return
  throw new Error(`${folder} belongs to somebody else: remove it, or set TMPDIR to another folder`)
}

/** Cleaners of temporary folders delete old files one by one, so that the folder is there proves nothing. */
async function isComplete(root: string, kept: string): Promise<boolean> {
  const [wanted, found] = await Promise.all([filesOf(root), filesOf(kept)])
  return [...wanted].every((file) => found.has(file))
}

async function filesOf(folder: string): Promise<Set<string>> {
  return new Set(await readdir(join(folder, 'native'), { recursive: true }).catch(() => []))
}

/** The modes are not copied: a package installed under umask 077 is closed to others file by file. */
async function openToAll(folder: string): Promise<void> {
  await chmod(folder, 0o755)
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    // `path` is the name of `parentPath` on Node 20.
    const parent = entry.parentPath ?? entry.path
    if (entry.isSymbolicLink()) continue
    const isProgram = entry.isDirectory() || basename(parent) === 'bin'
    await chmod(join(parent, entry.name), isProgram ? 0o755 : 0o644)
  }
}

/** Whole or not at all: a start at the same moment must never see half a copy. */
async function replace(kept: string, fresh: string): Promise<void> {
  const old = await mkdtemp(join(dirname(kept), 'postbox-old-'))
  await rename(kept, join(old, 'copy')).catch(() => {})
  await rename(fresh, kept).catch(() => rm(fresh, { recursive: true }))
  await rm(old, { recursive: true })
}
