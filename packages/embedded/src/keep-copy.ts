import { randomUUID } from 'node:crypto'
import { chmod, copyFile, lstat, mkdir, readdir, readFile, rename } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'

/**
 * A copy of the package that is ours to repair and open to every account: node_modules below a 0700 home is closed to
 * "nobody". It is kept for the next start, which then need not copy 60 MB again.
 */
export async function keepCopy(root: string): Promise<string> {
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
  const copy = join(tmpdir(), `postbox-binaries-${basename(root)}-${version}-${process.getuid?.()}`)
  await mkdir(copy, { recursive: true, mode: 0o755 })
  await refuseForeign(copy)
  await copyMissing(root, copy)
  return copy
}

/** The temporary folder is everybody's, and the name can be guessed: run nothing from it that another user put there. */
async function refuseForeign(folder: string): Promise<void> {
  const found = await lstat(folder)
  if (found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o022) === 0) return
  throw new Error(`${folder} belongs to somebody else: remove it, or set TMPDIR to another folder`)
}

/**
 * File by file, because cleaners of temporary folders delete that way: that a folder is there proves nothing. The modes
 * are not copied, a package installed under umask 077 is closed to others. Links are left to the repair.
 */
async function copyMissing(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true })
  await chmod(to, 0o755)
  const present = await readdir(to)
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) await copyMissing(source, target)
    else if (entry.isFile() && !present.includes(entry.name)) await copyWhole(source, target)
  }
}

/** A start at the same moment must never see half a file. */
async function copyWhole(source: string, target: string): Promise<void> {
  const unfinished = `${target}-${randomUUID()}`
  await copyFile(source, unfinished)
  await chmod(unfinished, 0o755)
  await rename(unfinished, target)
}
