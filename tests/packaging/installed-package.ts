import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Command, runCommand } from '../support/run-command.ts'

export const repository: string = fileURLToPath(new URL('../..', import.meta.url))

export interface InstalledPackage {
  readonly tarball: string
  /** Paths in the tarball, as a user will find them below node_modules/postbox. */
  readonly files: readonly string[]
  /** An ES module project with nothing in it but the package. */
  readonly project: string
  remove(): void
}

/** Packs postbox as `npm publish` would and installs the tarball, offline: it must not need anything else. */
export async function installPackage(): Promise<InstalledPackage> {
  // Resolved, because Node compares real paths and the temporary folder is a link on macOS.
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'postbox-packaging-')))
  const packed = await run('npm', {
    args: ['pack', '--json', '--foreground-scripts=false', '--pack-destination', folder],
    cwd: join(repository, 'packages/postbox'),
  })
  const [{ filename, files }] = JSON.parse(packed.stdout) as [{ filename: string; files: { path: string }[] }]
  const tarball = join(folder, filename)
  const project = join(folder, 'project')
  mkdirSync(project)
  write(project, 'package.json', '{ "name": "project", "private": true, "type": "module" }')
  await run('npm', { args: ['install', '--offline', '--ignore-scripts', tarball], cwd: project })
  return {
    tarball,
    files: files.map(({ path }) => path),
    project,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** Lends the project packages of this repository, which `npm install` would have to fetch. */
export function lend(project: string, names: readonly string[]): void {
  for (const name of names) {
    const target = join(project, 'node_modules', name)
    mkdirSync(dirname(target), { recursive: true })
    symlinkSync(join(repository, 'node_modules', name), target, 'junction')
  }
}

export function write(project: string, name: string, text: string): string {
  const path = join(project, name)
  writeFileSync(path, text)
  return path
}

/** Runs a command of this repository to its end; throws with everything that it printed unless it ended with 0. */
export async function run(
  command: string,
  { args, cwd }: Omit<Command, 'env'>,
): Promise<{ stdout: string; stderr: string }> {
  const path = `${join(repository, 'node_modules/.bin')}${delimiter}${process.env['PATH']}`
  const env = { ...process.env, PATH: path }
  const { status, stdout, stderr } = await runCommand(command, { args, cwd, env })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}\n${stdout}${stderr}`)
  return { stdout, stderr }
}
