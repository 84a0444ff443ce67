import { lstatSync, mkdirSync, readdirSync, readlinkSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'

/**
 * A node_modules of links. Those of the workspaces are made anew as they are, relative, so that they lead into the copy: a link to the whole
 * folder would lead every `import 'postbox'` back to the tree without the mutation.
 */
export function linkModules(from, to) {
  mkdirSync(to)
  for (const name of readdirSync(from)) {
    const [source, target] = [join(from, name), join(to, name)]
    // Caches of the tools: each tree has its own.
    if (name.startsWith('.') && name !== '.bin') continue
    if (lstatSync(source).isSymbolicLink()) symlinkSync(readlinkSync(source), target)
    else if (name.startsWith('@')) linkModules(source, target)
    else symlinkSync(source, target)
  }
}
