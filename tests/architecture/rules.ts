// The dependency rule of ARCHITECTURE.md as functions over a tree of sources: path below src → text.
// It reads import lines and needs no compiler, so it runs in milliseconds and on trees made up by its own tests.
import { posix } from 'node:path'

export type Sources = ReadonlyMap<string, string>

interface Import {
  readonly from: string
  readonly specifier: string
  readonly typeOnly: boolean
}

/** `type x` allows only `import type` from x; a folder allows all files below it. */
const allowedByFolder: Readonly<Record<string, readonly string[]>> = {
  core: ['core'],
  sql: ['core', 'sql'],
  // An adapter recognises and forwards; from core it needs the words of its errors, never a decision.
  adapters: [
    'type core',
    'core/errors.ts',
    'core/show.ts',
    'core/unreachable.ts',
    'sql/statement.ts',
    'adapters',
  ],
  runtime: ['core', 'sql', 'runtime', 'type adapters'],
  // It drives the others in the place of a database, so it knows how an outbox is put together.
  testing: [
    'core',
    'sql',
    'runtime',
    'adapters',
    'testing',
    'type lifecycle.ts',
    'type publish.ts',
    'type seam.ts',
    'assemble-lifecycle.ts',
    'dead-letters.ts',
    'outbox.ts',
    'pending.ts',
  ],
}

const forbiddenFolders = ['utils', 'lib', 'common', 'helpers']
const maxLines = 400

// Quoted strings first, so that `//` inside one is not taken for a comment.
const stringOrComment = /(['"])(?:\\.|(?!\1)[^\\\n])*\1|\/\/[^\n]*|\/\*[\s\S]*?\*\//g
const importStatement = /^(?:import|export)\s+(type\s)?(?:[\w*{][^'"`;]*?\bfrom\s*)?['"]([^'"\n]+)['"]/gm
const importCall = /\bimport\s*\(\s*['"`]([^'"`\n]+)['"`]/g
const ambient =
  /(?<![.\w])(?:Date\.now|new Date\(\s*\)|Math\.random|performance\b|(?:set|clear)(?:Timeout|Interval|Immediate)\b|queueMicrotask\b|AbortSignal\.timeout|process\s*[.?[]|globalThis\b|crypto\s*[.?[]|fetch\s*\(|console\b)/g

export function violations(sources: Sources): readonly string[] {
  return [
    ...folderViolations(sources),
    ...[...sources].flatMap(([file, text]) => fileViolations({ file, text, sources })),
    ...cycles(sources).map((cycle) => `cycle: ${cycle.join(' → ')}`),
  ]
}

/** The `Path n/7` lines in the order of their numbers: the way of a message through the files. */
export function spine(sources: Sources): readonly string[] {
  return [...sources.values()].flatMap((text) => text.match(/^\/\/ (Path \d\/7 · \S.*)/)?.[1] ?? []).sort()
}

function folderViolations(sources: Sources): readonly string[] {
  const folders = new Set([...sources.keys()].flatMap((file) => file.split('/').slice(0, -1)))
  const unruled = new Set(
    [...sources.keys()].map(folderOf).filter((f) => f !== '' && !(f in allowedByFolder)),
  )
  return [
    ...forbiddenFolders.filter((name) => folders.has(name)).map((name) => `a folder is named ${name}`),
    ...[...unruled].map((name) => `folder ${name} has no dependency rule`),
  ]
}

function fileViolations({ file, text, sources }: { file: string; text: string; sources: Sources }): string[] {
  const lines = text.trimEnd().split('\n').length
  const strayPath = /(?<!^)\/\/ Path \d\/7/.test(text)
  const code = text.replace(stringOrComment, '')
  const calls = folderOf(file) === 'core' ? [...code.matchAll(ambient)].map(([call]) => call) : []
  return [
    ...(lines > maxLines ? [`${file} has ${lines} lines, more than ${maxLines}`] : []),
    ...(strayPath ? [`${file} has its Path line below the first line`] : []),
    ...calls.map((call) => `${file} uses ${call}: core takes time, chance and effects as arguments`),
    ...importsOf(file, text).flatMap((found) => importViolation(found, sources) ?? []),
  ]
}

function importViolation(found: Import, sources: Sources): string | undefined {
  const { from, specifier } = found
  if (specifier.startsWith('node:')) {
    return folderOf(from) === 'core' ? `${from} imports ${specifier}: core has no node: imports` : undefined
  }
  if (!specifier.startsWith('.')) return `${from} imports the package ${specifier}: there are no dependencies`

  const to = targetOf(found)
  if (!sources.has(to)) return `${from} imports ${specifier}, which is no file of src`
  const allowed = allowedByFolder[folderOf(from)]
  if (allowed === undefined || allowed.some((rule) => permits(rule, to, found.typeOnly))) return undefined
  return `${from} imports ${to}${found.typeOnly ? '' : ' as a value'}: ${folderOf(from)} may import ${allowed.join(', ')}`
}

function permits(rule: string, to: string, typeOnly: boolean): boolean {
  const typesAlone = rule.startsWith('type ')
  const place = typesAlone ? rule.slice('type '.length) : rule
  return (typeOnly || !typesAlone) && (to === place || to.startsWith(`${place}/`))
}

function cycles(sources: Sources): readonly string[][] {
  const found: string[][] = []
  const finished = new Set<string>()
  const visit = (file: string, trail: readonly string[]): void => {
    if (trail.includes(file)) found.push([...trail.slice(trail.indexOf(file)), file])
    if (trail.includes(file) || finished.has(file)) return
    const targets = importsOf(file, sources.get(file) ?? '').map(targetOf)
    for (const target of new Set(targets)) visit(target, [...trail, file])
    finished.add(file)
  }
  for (const file of sources.keys()) visit(file, [])
  return found
}

function importsOf(from: string, text: string): readonly Import[] {
  const code = text.replace(stringOrComment, (match) => (match.startsWith('/') ? '' : match))
  return [
    ...[...code.matchAll(importStatement)].map(([, type, specifier = '']) => ({
      from,
      specifier,
      typeOnly: type !== undefined,
    })),
    ...[...code.matchAll(importCall)].map(([, specifier = '']) => ({ from, specifier, typeOnly: false })),
  ]
}

function targetOf({ from, specifier }: Import): string {
  return posix.join(posix.dirname(from), specifier)
}

function folderOf(file: string): string {
  return file.includes('/') ? (file.split('/')[0] ?? '') : ''
}
