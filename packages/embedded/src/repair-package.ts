import { access, chmod, constants, mkdir, readFile, stat, symlink } from 'node:fs/promises'
import { basename, delimiter, join } from 'node:path'

interface Link {
  /** Both relative to the package; every link lies beside its file, in native/lib. */
  readonly source: string
  readonly target: string
}

/** Some unpackers and file shares lose the execute bits. Throws when they are lost and not ours to give back. */
export async function restoreExecutePermission(root: string): Promise<void> {
  if (process.platform === 'win32') return
  for (const name of ['initdb', 'postgres']) {
    const file = join(root, 'native', 'bin', name)
    const { mode } = await stat(file)
    if ((mode & 0o111) !== 0) continue
    if (!(await isOurs(file))) throw Object.assign(new Error(`${file} is not executable`), { code: 'EACCES' })
    await chmod(file, 0o755)
  }
}

/**
 * npm packages cannot contain symbolic links, so the package makes its own in an install script; where those are
 * blocked the server stops at "cannot open shared object file". Makes the links that are missing, in the package or,
 * where that is read-only or somebody else's, in `scratch`. Returns the environment the binaries then need.
 */
export async function restoreLinks(root: string, scratch: string): Promise<NodeJS.ProcessEnv> {
  const missing = await missingLinks(root)
  if (missing.length === 0) return {}
  const library = join(root, 'native', 'lib')
  if (await isOurs(library)) {
    for (const link of missing) await makeLink(basename(link.source), join(root, link.target))
    return {}
  }
  const links = join(scratch, 'lib')
  await mkdir(links, { mode: 0o755 })
  for (const link of missing) await makeLink(join(root, link.source), join(links, basename(link.target)))
  const variable = process.platform === 'darwin' ? 'DYLD_LIBRARY_PATH' : 'LD_LIBRARY_PATH'
  // Both folders: libraries that need no link, libssl for one, are only in the second.
  return { [variable]: links + delimiter + library }
}

async function missingLinks(root: string): Promise<Link[]> {
  const list = await readFile(join(root, 'native', 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  const missing: Link[] = []
  for (const link of JSON.parse(list) as Link[]) {
    if (!(await exists(join(root, link.target)))) missing.push(link)
  }
  return missing
}

/** Writable is not enough: root may write everywhere, and would leave its files in another user's checkout. */
async function isOurs(path: string): Promise<boolean> {
  const { uid } = await stat(path)
  return (
    uid === process.getuid?.() &&
    (await access(path, constants.W_OK).then(
      () => true,
      () => false,
    ))
  )
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

async function makeLink(to: string, at: string): Promise<void> {
  try {
    await symlink(to, at)
  } catch (error) {
    // Another start made it at the same time.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}
