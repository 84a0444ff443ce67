import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runCommand } from '../support/run-command.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** One file's errors as `tsc` prints them, without their place. */
export interface Diagnostic {
  /** Counted from 1, as the compiler does. */
  readonly line: number
  readonly column: number
  readonly message: string
}

/**
 * Compiles each text as a module of its own, with the flags of this workspace, in one run of `tsc`: name → diagnostics.
 * Outside the workspace, where no other compiler run can meet files that are wrong on purpose.
 */
export async function compile(
  texts: ReadonlyMap<string, string>,
): Promise<ReadonlyMap<string, readonly Diagnostic[]>> {
  const folder = mkdtempSync(join(tmpdir(), 'postbox-types-'))
  try {
    writeProject(folder, texts)
    const args = [tsc(), '--pretty', 'false', '-p', folder]
    const { stdout } = await runCommand(process.execPath, { args, cwd: folder })
    return byFile(texts, stdout)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function tsc(): string {
  return join(root, 'node_modules', 'typescript', 'bin', 'tsc')
}

function writeProject(folder: string, texts: ReadonlyMap<string, string>): void {
  const config = {
    extends: join(root, 'tsconfig.base.json'),
    // Mistakes are a line or two: what they leave unused is no mistake of theirs.
    compilerOptions: { noEmit: true, noUnusedLocals: false },
    include: ['src'],
  }
  mkdirSync(join(folder, 'src'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction')
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  for (const [name, text] of texts) writeFileSync(join(folder, 'src', `${name}.ts`), text)
}

/** A diagnostic begins with its place; the lines after it, indented, belong to it. */
function byFile(
  texts: ReadonlyMap<string, string>,
  output: string,
): ReadonlyMap<string, readonly Diagnostic[]> {
  const found = new Map<string, Diagnostic[]>([...texts.keys()].map((name) => [name, []]))
  for (const entry of output.split(/\r?\n(?! )/).filter((line) => line !== '')) {
    const place = /^src\/(?<name>[^(]+)\.ts\((?<line>\d+),(?<column>\d+)\): (?<message>.*)$/s.exec(
      entry,
    )?.groups
    const diagnostics = found.get(place?.['name'] ?? '')
    if (place === undefined || diagnostics === undefined) throw new Error(`tsc says: ${entry}`)
    const { line, column, message } = place
    diagnostics.push({ line: Number(line), column: Number(column), message: String(message) })
  }
  return found
}
