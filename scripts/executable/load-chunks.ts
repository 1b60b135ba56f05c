/**
 * The main program of the executable: loads the chunks of the bundle, each when it is first needed, with the functions
 * that it used at build time already compiled. These functions are passed on as text, so they use nothing from outside
 * of themselves.
 */
import { appendFileSync, readFileSync } from 'node:fs'
import type { Script as VmScript } from 'node:vm'

/** `cachedData` is missing where V8 would not accept it; `release` frees its bytes before the next garbage collection. */
export type Chunk = { readonly source: string; readonly cachedData?: Buffer; readonly release?: () => void }
type ReadChunk = (name: string) => Chunk | undefined

type OnLoad = (name: string, script: VmScript) => void

/** Runs a chunk. It takes another one by `require('./NAME')`, and Node's modules by `require('node:NAME')`. */
export function runChunk(main: string, read: ReadChunk, onLoad?: OnLoad): void {
  const { Script } = process.getBuiltinModule('node:vm')
  const loaded = new Map<string, { exports: unknown }>()
  const take = (specifier: string): unknown => {
    const builtin = process.getBuiltinModule(specifier) as unknown
    if (builtin !== undefined) return builtin
    const name = specifier.replace('./', '')
    const known = loaded.get(name)
    if (known) return known.exports
    const chunk = read(name)
    if (!chunk) throw new Error(`This executable has no module ${specifier}.`)
    const { source, cachedData, release } = chunk
    // V8 compiles as usual if it rejects the code cache, for example because of its flags in NODE_OPTIONS.
    const script = new Script(source, { filename: name, ...(cachedData && { cachedData }) })
    release?.()
    onLoad?.(name, script)
    const module = { exports: {} }
    loaded.set(name, module)
    const define = script.runInThisContext() as (exports: object, require: typeof take, module: object) => void
    define(module.exports, take, module)
    return module.exports
  }
  take(main)
}

/** The parts of a chunk, as files. */
export type ChunkFiles = { readonly name: string; readonly source: string; readonly cache: string | undefined }

/**
 * Appends the chunks and their code caches to the executable or to another file, and an index of their lengths. Not as assets: those are
 * mapped, so all that is read once would count as resident from then on.
 */
export function appendChunks(executable: string, chunks: readonly ChunkFiles[]): void {
  const lengths: [string, number, number][] = []
  for (const { name, source, cache } of chunks) {
    const parts = [readFileSync(source), cache === undefined ? Buffer.alloc(0) : readFileSync(cache)] as const
    for (const part of parts) appendFileSync(executable, part)
    lengths.push([name, parts[0].length, parts[1].length])
  }
  const index = Buffer.from(JSON.stringify(lengths))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(index.length)
  for (const part of [index, length]) appendFileSync(executable, part)
}

/** Reads what `appendChunks` has appended: all places are counted from the end of the file. */
export function appendedChunks(): ReadChunk {
  const { closeSync, fstatSync, openSync, readSync } = process.getBuiltinModule('node:fs')
  const open = () => {
    try {
      // This works also after another file has taken its name.
      return openSync(process.platform === 'linux' ? '/proc/self/exe' : process.execPath, 'r')
    } catch (error) {
      // The user of the container image cannot read the executable: the chunks are in a file next to it.
      if (!(error instanceof Error && 'code' in error && error.code === 'EACCES')) throw error
      return openSync(`${process.execPath}.chunks`, 'r')
    }
  }
  const readAt = (file: number, position: number, length: number) => {
    const bytes = Buffer.allocUnsafeSlow(length)
    readSync(file, bytes, 0, length, position)
    return bytes
  }
  const openFirst = () => {
    try {
      return open()
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      process.stderr.write(
        `agent-server: its own program cannot be read (${reason}). It needs /proc: mount it, for example with mount -t proc proc /proc.\n`,
      )
      return process.exit(1)
    }
  }
  const file = openFirst()
  let end = fstatSync(file).size - 4
  const length = readAt(file, end, 4).readUInt32LE()
  end -= length
  const index = JSON.parse(readAt(file, end, length).toString()) as [string, number, number][]
  closeSync(file)
  const places = new Map<string, { position: number; source: number; cache: number }>()
  for (const [name, source, cache] of index.toReversed())
    places.set(name, { position: (end -= source + cache), source, cache })
  return (name) => {
    const place = places.get(name)
    if (!place) return undefined
    const chunk = open()
    try {
      const bytes = readAt(chunk, place.position, place.source + place.cache)
      const source = bytes.toString('latin1', 0, place.source)
      const release = () => void bytes.buffer.transfer(0)
      return { source, ...(place.cache > 0 && { cachedData: bytes.subarray(place.source) }), release }
    } finally {
      closeSync(chunk)
    }
  }
}

/** Reads chunks from the assets, without a code cache: for what rarely runs, and where nothing can be appended. */
export function assetChunks(): ReadChunk {
  const { getRawAsset } = process.getBuiltinModule('node:sea')
  return (name) => ({ source: Buffer.from(getRawAsset(name)).toString('latin1') })
}

/** A chunk, which is a CommonJS module, as a function of what it takes from outside. */
export function asFunction(chunk: string): string {
  const code = chunk
    .replace(/^#![^\n]*\n/, '')
    .replaceAll(/\bimport\((["'`])(node:[^"'`]+)\1\)/g, 'Promise.resolve(process.getBuiltinModule($1$2$1))')
    .replaceAll('__filename', 'process.execPath')
  return `(function(exports,require,module){'use strict';${code}\n})`
}
