/** The headers of a download, chosen so that no browser treats a file as a page or a script of this server. */
import { extname } from 'node:path/posix'

const PLAIN = 'text/plain; charset=utf-8'
const BYTES = 'application/octet-stream'

/** Media types that cannot execute code. Everything that could (HTML, SVG, PDF) is sent as plain text or bytes. */
const INERT: Readonly<Record<string, string>> = {
  '.avif': 'image/avif',
  '.bmp': 'image/bmp',
  '.gif': 'image/gif',
  '.ico': 'image/x-icon',
  '.jpeg': 'image/jpeg',
  '.jpg': 'image/jpeg',
  '.png': 'image/png',
  '.webp': 'image/webp',
  '.mp3': 'audio/mpeg',
  '.ogg': 'audio/ogg',
  '.wav': 'audio/wav',
  '.mp4': 'video/mp4',
  '.webm': 'video/webm',
  '.gz': 'application/gzip',
  '.json': 'application/json; charset=utf-8',
  '.tar': 'application/x-tar',
  '.zip': 'application/zip',
}

const TEXT = new Set(
  (
    '.bash .bat .c .cc .cfg .clj .cmake .conf .cpp .cs .css .csv .cts .cxx .dart .diff .env .erl .ex .exs .fish .go .gradle ' +
    '.graphql .h .hpp .hs .htm .html .ini .java .jl .js .jsonl .jsx .kt .less .lock .log .lua .m .markdown .md .mjs .ml .mts ' +
    '.patch .php .pl .properties .proto .ps1 .py .r .rb .rs .rst .sass .scala .scss .sh .sql .srt .svelte .svg .swift .tex ' +
    '.tf .toml .ts .tsv .tsx .txt .vue .xhtml .xml .yaml .yml .zig .zsh'
  ).split(' '),
)

export function contentTypeOf(name: string): string {
  const extension = extname(name).toLowerCase()
  return INERT[extension] ?? (TEXT.has(extension) ? PLAIN : BYTES)
}

/** The browser saves the file under its name; if it displays it anyway, then without scripts and in a unique origin. */
export function downloadHeaders(name: string): Record<string, string> {
  return {
    'content-disposition': contentDisposition(name),
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
    'cross-origin-resource-policy': 'same-origin',
    // Caches must revalidate each time: only the server knows whether the file has changed.
    'cache-control': 'private, no-cache',
  }
}

/** RFC 6266: an ASCII name for all clients, and the exact name for clients that support it. */
function contentDisposition(name: string): string {
  const ascii = name.replaceAll(/[^\x20-\x7e]|["\\%]/g, '_')
  const plain = `attachment; filename="${ascii}"`
  return ascii === name ? plain : `${plain}; filename*=UTF-8''${encodeExtended(name)}`
}

/** RFC 8187 allows fewer characters than `encodeURIComponent` leaves unescaped. */
const encodeExtended = (name: string) =>
  encodeURIComponent(name.toWellFormed()).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
