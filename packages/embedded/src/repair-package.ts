import { chmod, readFile, stat, symlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

/** Leaves a package that is whole alone and throws for one that is not ours to write to. Returns its folder of programs. */
export async function repairPackage(root: string): Promise<string> {
  const programs = join(root, 'native', 'bin')
  if (process.platform === 'win32') return programs
  // npm packages cannot contain symbolic links, so this one makes its own in an install script; where those are
  // blocked the server stops at "cannot open shared object file".
  const links = await readFile(join(root, 'native', 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  for (const { source, target } of JSON.parse(links) as { source: string; target: string }[]) {
    if (await stat(join(root, target)).catch(() => undefined)) continue
    await refuseForeign(dirname(join(root, target)))
    await symlink(basename(source), join(root, target)).catch(unlessItExists)
  }
  // Some unpackers and file shares lose the execute bits.
  for (const program of [join(programs, 'initdb'), join(programs, 'postgres')]) {
    if (((await stat(program)).mode & 0o111) !== 0) continue
    await refuseForeign(program)
    await chmod(program, 0o755)
  }
  return programs
}

/** The operating system refuses for everybody but root, who would leave its files in another user's checkout. */
async function refuseForeign(path: string): Promise<void> {
  if ((await stat(path)).uid !== process.getuid?.()) throw new Error(`${path} belongs to somebody else`)
}

/** Then another start made it at the same time. */
function unlessItExists(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error
}
