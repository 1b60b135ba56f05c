/** Finds what is wrong with the archive of the npm package, without installing it. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { ENTRIES, makeManifest } from './manifest.ts'

const ROOT = join(import.meta.dirname, '../..')

/** Nothing else belongs into it. */
const CONTENT =
  /^package\/(?:package\.json|README\.md|LICENSE|LICENSES\.txt|CHANGELOG\.md|[a-z]+\.js|lib\/server\/[\w.-]+\.m?js|(?:openapi|catalog)\/[a-z]+\.json|swagger-ui\/[\w.-]+\.(?:js|css|png)|types\/[\w./-]+\.d\.ts|ui\/[\w.-]+)$/

/** The limit is twice the size: more is a mistake of the build. */
const MAX_BYTES = 6_000_000

/** Returns a sentence for each. */
export async function faultsOfArchive(archive: string, bytes: number): Promise<string[]> {
  const files = tar('-tzf', archive).trim().split('\n')
  return [
    ...files.filter((file) => !CONTENT.test(file)).map((file) => `${file} does not belong into the package.`),
    ...(bytes > MAX_BYTES ? [`The archive has ${bytes} bytes, which is more than ${MAX_BYTES}.`] : []),
    ...(tar('-xzOf', archive).includes(ROOT) ? [`A file names ${ROOT}, a path of this machine.`] : []),
    ...faultsForBrowsers(archive, files),
    ...(await faultsOfManifest(archive)),
    ...(await faultsOfTypes(archive)),
  ]
}

function tar(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync('tar', args, { encoding: 'utf8', maxBuffer: 256 * 1024 * 1024 })
  if (status !== 0) throw new Error(`tar ${args.join(' ')} failed: ${stderr}`)
  return stdout
}

/** What browsers load must not import modules of Node or other packages. */
function faultsForBrowsers(archive: string, files: readonly string[]): string[] {
  const seen = new Set<string>()
  const open = ENTRIES.filter(({ isForBrowsers }) => isForBrowsers).map(({ name }) => `package/${name}.js`)
  const faults: string[] = []
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (seen.has(file)) continue
    seen.add(file)
    if (!files.includes(file)) faults.push(`${file} is missing.`)
    else
      for (const specifier of importsOf(tar('-xzOf', archive, file)))
        if (specifier.startsWith('.')) open.push(join(dirname(file), specifier))
        else faults.push(`${file} is for browsers, and imports ${specifier}.`)
  }
  return faults
}

const importsOf = (code: string): string[] =>
  [...code.matchAll(/^(?:import|export)\b[^;'"]*?["']([^'"]+)["']|\bimport\(["']([^'"]+)["']\)/gm)].map(
    ([, one, other]) => one ?? other ?? '',
  )

async function faultsOfManifest(archive: string): Promise<string[]> {
  const { buffer } = new Uint8Array(readFileSync(archive))
  const { messages } = await publint({ pack: { tarball: buffer }, level: 'warning', strict: true })
  return messages.map((message) => `publint: ${formatMessage(message, makeManifest()) ?? message.code}`)
}

async function faultsOfTypes(archive: string): Promise<string[]> {
  const result = await checkPackage(createPackageFromTarballData(new Uint8Array(readFileSync(archive))))
  if (result.types === false) return ['Are The Types Wrong: the package has no types.']
  return result.problems.flatMap((problem) => {
    // Every supported Node has `require` for modules, and `node10` knows no exports.
    if (problem.kind === 'CJSResolvesToESM') return []
    if ('resolutionKind' in problem && problem.resolutionKind === 'node10') return []
    return [`Are The Types Wrong: ${JSON.stringify(problem)}`]
  })
}
