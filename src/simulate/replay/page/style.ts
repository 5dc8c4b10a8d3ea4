/** How a replay's page looks. Its pictures are white, and so is it. */
export const STYLE = `:root{color-scheme:light}
body{font:15px/1.45 sans-serif;margin:0;color:#1f2328;background:#fff}
main{max-width:1400px;margin:0 auto;padding:1.2em}
h1{font-size:1.5em}h2{font-size:1.25em;margin:1.6em 0 .3em;overflow-wrap:anywhere}
h3{font-size:1em;margin:0;font-weight:normal;overflow-wrap:anywhere}
table{border-collapse:collapse;margin:.6em 0}
th,td{padding:.25em .8em;border-bottom:1px solid #d0d7de;text-align:left;vertical-align:top}
th,td{font-weight:normal;overflow-wrap:anywhere}
thead th{color:#57606a}
.tables{display:flex;align-items:flex-start;flex-wrap:wrap;gap:0 2em;font-size:14px}
.verdict{font-size:1.15em;padding:.5em .8em;border-left:6px solid #57606a;background:#f6f8fa}
.verdict.safe{border-color:#1a7f37}.verdict.worse{border-color:#cf222e}.verdict.cannot_tell{border-color:#9a6700}
.flip{border:1px solid #d0d7de;border-left-width:6px;border-radius:6px;padding:.8em 1em}
.flip{margin:1em 0}
.flip.worse{border-left-color:#cf222e}.flip.better{border-left-color:#1a7f37}
.flip.worse b{color:#a40e26}.flip.better b{color:#116329}
.flip tbody th{overflow-wrap:normal}
.id{margin:0;color:#57606a;font:12px ui-monospace,monospace;overflow-wrap:anywhere}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:0 1em}
figure{margin:.6em 0}figcaption{color:#57606a}
svg{max-width:100%;height:auto;border:1px solid #d0d7de;border-radius:4px}
.differs td{background:#fff8c5}
footer{margin:2em 0 0;color:#57606a;font-size:13px}
`;
