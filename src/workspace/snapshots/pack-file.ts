/**
 * Writes one pack of git, as gitformat-pack(5) describes it. Git itself would need a process, the content of each file once
 * more through a pipe, and a slower SHA-1.
 */
import { createHash, randomUUID } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { crc32, deflate, deflateSync } from 'node:zlib'
import { syncDirectory, writeAll } from '../../lib/durable-file.ts'
import type { Slices } from '../../lib/time-slices.ts'
import type { PackedObject } from './pack-index.ts'
import { writePackIndex } from './pack-index.ts'

/** The numbers of the kinds in packs. */
const KINDS = { commit: 1, tree: 2, blob: 3 } as const
export type ObjectKind = keyof typeof KINDS

const HEADER_BYTES = 12
/** What is written at a time. */
const STAGE_BYTES = 1024 ** 2
/** The size up to which compressing costs less than to hand the content to a thread. */
const QUICK_BYTES = 64 * 1024
/**
 * Level 1 is what git uses for loose objects; a later repack finds what the objects have in common. For a small file, the memory
 * that zlib takes by default costs as much as the work.
 */
const LARGE = { level: 1 } as const
const SMALL = { level: 1, windowBits: 14, memLevel: 6, chunkSize: 4096 } as const
const WINDOW_BYTES = 16 * 1024
const deflateInThread = promisify<Buffer, typeof LARGE, Buffer>(deflate)

export class PackFile {
  readonly #directory: string
  readonly #path: string
  readonly #file: FileHandle
  readonly #objects: PackedObject[] = []
  readonly #names = new Set<string>()
  #stage = Buffer.allocUnsafe(STAGE_BYTES)
  #staged = HEADER_BYTES
  /** Bytes before the stage. */
  #written = 0
  #writing: Promise<void> = Promise.resolve()

  private constructor(directory: string, path: string, file: FileHandle) {
    this.#directory = directory
    this.#path = path
    this.#file = file
    this.#stage.write('PACK', 0, 'latin1')
    this.#stage.writeUInt32BE(2, 4)
  }

  /** Creates a file in the directory of the packs of a store, under a name that git does not know. */
  static async create(directory: string): Promise<PackFile> {
    const path = join(directory, `tmp_pack_${randomUUID()}`)
    return new PackFile(directory, path, await open(path, 'wx+', 0o600))
  }

  get isEmpty(): boolean {
    return this.#names.size === 0
  }

  /** `name`: the SHA-1 of the object, which this does not check. Objects may be added concurrently. */
  async add(kind: ObjectKind, name: string, content: Buffer): Promise<void> {
    if (this.#names.has(name)) return
    this.#names.add(name)
    const options = content.length <= WINDOW_BYTES ? SMALL : LARGE
    const isQuick = content.length <= QUICK_BYTES
    const packedContent = isQuick ? deflateSync(content, options) : await deflateInThread(content, LARGE)
    const header = headerOf(kind, content.length)
    this.#objects.push({ name, offset: this.#written + this.#staged, crc: crc32(packedContent, crc32(header)) })
    this.#put(header)
    this.#put(packedContent)
    // All who add wait for the disk, so that no more than a few stages are in memory.
    await this.#writing
  }

  /** Durable when it resolves; git has the objects then. */
  async finish(slices: Slices): Promise<void> {
    this.#flush()
    await this.#writing
    const count = Buffer.alloc(4)
    count.writeUInt32BE(this.#objects.length)
    await writeAll(this.#file, count, 8)
    const name = await this.#digest()
    await writeAll(this.#file, name, this.#written)
    await this.#file.datasync()
    await this.#file.close()
    const index = join(this.#directory, `tmp_idx_${randomUUID()}`)
    try {
      await using file = await open(index, 'wx', 0o600)
      await file.writeFile(await writePackIndex(this.#objects, name, slices))
      await file.datasync()
      const final = join(this.#directory, `pack-${name.toString('hex')}`)
      await rename(this.#path, `${final}.pack`)
      await rename(index, `${final}.idx`)
    } catch (error) {
      await rm(index, { force: true })
      throw error
    }
    await syncDirectory(this.#directory)
  }

  /** Nothing is left of it. */
  async discard(): Promise<void> {
    await this.#writing.catch(() => {})
    await this.#file.close().catch(() => {})
    await rm(this.#path, { force: true })
  }

  #put(bytes: Buffer): void {
    for (let offset = 0; offset < bytes.length;) {
      const copiedBytes = bytes.copy(this.#stage, this.#staged, offset)
      offset += copiedBytes
      this.#staged += copiedBytes
      if (this.#staged === STAGE_BYTES) this.#flush()
    }
  }

  #flush(): void {
    const [bytes, position] = [this.#stage.subarray(0, this.#staged), this.#written]
    this.#written += bytes.length
    this.#stage = Buffer.allocUnsafe(STAGE_BYTES)
    this.#staged = 0
    this.#writing = this.#writing.then(() => writeAll(this.#file, bytes, position))
    this.#writing.catch(() => {}) // `add` and `finish` reject with it
  }

  /** The number of objects is in the first bytes and known last. */
  async #digest(): Promise<Buffer> {
    const hash = createHash('sha1')
    for (let at = 0; at < this.#written;) {
      const { bytesRead } = await this.#file.read(this.#stage, 0, Math.min(STAGE_BYTES, this.#written - at), at)
      if (bytesRead === 0) throw new Error('the pack has become shorter')
      hash.update(this.#stage.subarray(0, bytesRead))
      at += bytesRead
    }
    return hash.digest()
  }
}

/** The kind and the size before compression; 4 bits of it in the first byte, then 7 in each. */
function headerOf(kind: ObjectKind, size: number): Buffer {
  const bytes = [(KINDS[kind] << 4) | (size & 0x0f)]
  for (let rest = Math.floor(size / 16); rest > 0; rest = Math.floor(rest / 128)) {
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) | 0x80
    bytes.push(rest & 0x7f)
  }
  return Buffer.from(bytes)
}
