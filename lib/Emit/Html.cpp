// Writes a page that shows runs: the viewer of html/, and the runs as columns
// of numbers.
#include "Emitters.h"
#include "Picture.h"
#include "ppcc/Basic/Diagnostics/Pictures.h"
#include "ppcc/IR/Location.h"
#include "ppcc/Support/Embedded.h"

#include "llvm/ADT/Sequence.h"
#include "llvm/Support/Base64.h"

using namespace ppcc;

namespace ppcc {
/// The parts of each page: the files of html/.
ArrayRef<EmbeddedFile> viewerFiles();
} // namespace ppcc

namespace {

/// Causes that are no row of the page, as viewer.js has them.
constexpr uint32_t noCause = 0xFFFFFFFF, hiddenCause = 0xFFFFFFFE;

/// A node as viewer.js has it; its times are in units, from the begin of its
/// box.
struct PageNode {
  uint32_t member, name, layer;
  uint8_t kind, lane;
  double start, end;
};

/// When the nodes of the boxes of a page run. Each order of nodes is there
/// once, however many boxes have it.
class NodeTable {
public:
  /// Stops at the box with which it has more than `most` nodes.
  NodeTable(const Picture &picture, size_t maxNodes) {
    for (RankId rank : picture.ranks) {
      if (picture.lanes().empty())
        break;
      RowRange rows = picture.program.rows(rank);
      size_t first = orderOfRow.size();
      orderOfRow.resize(first + rows.size(), noOrder);
      picture.forEachAnyBox(rank, [&](const Box &box) {
        const NodeOrder *order =
            nodes.size() <= maxNodes ? picture.orderOf(box) : nullptr;
        if (order)
          orderOfRow[first + RowRange{rows.from, box.rows.from}.size()] =
              find(picture, box, *order);
      });
    }
  }

  /// Of all shown ranks, where a box begins; viewer.js knows `noOrder`.
  std::vector<uint32_t> orderOfRow;
  std::vector<uint32_t> begins{0}; ///< Of each order, its first node; the end.
  std::vector<PageNode> nodes;

private:
  static constexpr uint32_t noOrder = 0xFFFFFFFF;

  uint32_t find(const Picture &picture, const Box &box,
                const NodeOrder &order) {
    auto [found, isNew] =
        pageNumbers.try_emplace(order.number, begins.size() - 1);
    if (!isNew)
      return found->second;
    for (auto [member, number, start, end] : order.scheduled) {
      const GraphNode &node =
          picture.nodeOf(ActionId(box.rows.from.value + member), number);
      if (start != end)
        nodes.push_back({member, node.name, node.layer,
                         static_cast<uint8_t>(node.part.value),
                         static_cast<uint8_t>(node.lane),
                         double(start) / cost::unit, double(end) / cost::unit});
    }
    begins.push_back(static_cast<uint32_t>(nodes.size()));
    return found->second;
  }

  DenseMap<uint32_t, uint32_t> pageNumbers; ///< By NodeOrder::number.
};

/// A run of a page.
struct PagePicture {
  PagePicture(Picture &&picture, StringRef remark)
      : picture(std::move(picture)),
        title(this->picture.title() + remark.str()),
        nodes(this->picture, maxPageRows) {}

  Picture picture;
  std::string title;
  NodeTable nodes;
};

/// Writes one run as JSON; viewer.js reads it.
struct RunWriter {
  const PagePicture &page;
  SourceManager &sources;
  Writer &writer;
  const Picture &picture = page.picture;
  const Program &program = picture.program;
  const Simulation &times = picture.times;
  std::vector<uint32_t> rowStarts{0}; ///< Of the shown ranks, on the page.
  Time tick = 0;                      ///< Divides all times.
  bool isPerStageOrRank = false;      ///< Ticks do not fit 32 bits.

  void write() {
    for (RankId rank : picture.ranks)
      rowStarts.push_back(rowStarts.back() +
                          static_cast<uint32_t>(program.size(rank)));
    for (const auto *list : {&times.ends, &times.starts})
      for (Time time : *list)
        tick = std::gcd(tick, time);
    tick = std::max<Time>(tick, 1);
    isPerStageOrRank = times.makespan / tick > UINT32_MAX;
    writer.object([&](JsonFields &fields) { write(fields); },
                  {.between = ",\n", .lists = ","});
  }

  void write(JsonFields &fields) {
    fields("title", page.title);
    fields("tick", tick);
    fields("wide", isPerStageOrRank);
    if (picture.from != 0 || picture.to != times.makespan) {
      fields.key("span");
      writer.put('[', cost::format(picture.from), ',', cost::format(picture.to),
                 ']');
    }
    fields.values("ranks", picture.ranks);
    fields.values("rowStarts", rowStarts);
    fields.objects("kinds", program.kinds().ids(),
                   [&](JsonFields &ofKind, KindId id) { kind(ofKind, id); });
    fields.values("phases", program.phases());
    fields.values("lanes", program.kinds().lanes());
    fields.objects("pipes", program.pipeIds(),
                   [&](JsonFields &ofPipe, PipeId id) { pipe(ofPipe, id); });
    uint32_t chunks = picture.maxChunks > 1 ? picture.maxChunks : 0;
    fields.list("chunks", llvm::seq(chunks),
                [&](uint32_t chunk) { writer.json(picture.chunkName(chunk)); });
    fields.key("columns");
    writer.object([&](JsonFields &columns) { columnsOf(columns); },
                  {.between = ",\n"}, "{\n");
    if (!page.nodes.orderOfRow.empty())
      fields.object("nodes", [&](JsonFields &ofNodes) { nodes(ofNodes); });
    memory(fields);
    files(fields);
  }

  void kind(JsonFields &fields, KindId id) {
    const KindInfo &info = program.kinds()[id];
    fields("mnemonic", info.mnemonic);
    fields("label", picture.styleOf(id).label);
    fields("hatch", int(picture.styleOf(id).hatch));
    fields("words", picture.kindDescription(id));
    fields("class", info.occupiesRank() ? "compute"
                    : info.isDeclared() ? "beside"
                                        : kindClassName(info.kindClass));
    fields("moves", (info.defines & slot::crossStage) != 0);
    fields("lane", info.lane);
    fields.list("colors", llvm::seq(picture.maxChunks), [&](uint32_t chunk) {
      writer.json(hexOf(picture.fill(id, chunk)));
    });
  }

  void pipe(JsonFields &fields, PipeId id) {
    fields("name", program.pipe(id).name);
    fields.list("chunks", program.pipe(id).stages(),
                [&](StageId stage) { writer.put(picture.chunk(id, stage)); });
  }

  /// Numbers as the bytes of a little-endian array of T, in base 64.
  /// `each(put)` calls `put` with one number after another.
  template <class T, class Each>
  void array(JsonFields &fields, StringRef name, Each each) {
    fields.key(name);
    // Full bytes of base 64: a multiple of three numbers.
    constexpr size_t batch = 3 * 4096;
    std::vector<T> values;
    values.reserve(batch);
    auto flush = [&] {
      writer.put(llvm::encodeBase64(
          ArrayRef(reinterpret_cast<const char *>(values.data()),
                   values.size() * sizeof(T))));
      values.clear();
    };
    static_assert(std::endian::native == std::endian::little);
    writer.put('"');
    each([&](T value) {
      values.push_back(value);
      if (values.size() == batch)
        flush();
    });
    flush();
    writer.put('"');
  }

  /// An array with `value(row)` for each row of the shown ranks.
  template <class T, class Value>
  void column(JsonFields &fields, StringRef name, Value value) {
    array<T>(fields, name, [&](auto put) {
      for (RankId rank : picture.ranks)
        for (ActionId row : program.rows(rank))
          put(static_cast<T>(value(row)));
    });
  }

  template <class T, class Tag>
  void column(JsonFields &fields, StringRef name, Id<Tag> Action::*id) {
    column<T>(fields, name,
              [=, this](ActionId row) { return (program[row].*id).value; });
  }

  void columnsOf(JsonFields &fields) {
    auto timeColumn = [&](StringRef name, const std::vector<Time> &values) {
      auto ticks = [&](ActionId row) { return values[row.value] / tick; };
      isPerStageOrRank ? column<double>(fields, name, ticks)
                       : column<uint32_t>(fields, name, ticks);
    };
    timeColumn("start", times.starts);
    timeColumn("end", times.ends);
    column<uint32_t>(fields, "cause",
                     [&](ActionId row) { return pageCause(row); });
    column<uint8_t>(fields, "kind", &Action::kind);
    column<uint8_t>(fields, "pipe", &Action::pipe);
    column<uint16_t>(fields, "stage", &Action::stage);
    column<uint16_t>(fields, "peer", &Action::peer);
    column<uint32_t>(fields, "microbatch",
                     [&](ActionId row) { return program[row].microbatch; });
    column<uint16_t>(fields, "phase", &Action::phase);
    column<uint8_t>(fields, "joined",
                    [&](ActionId row) { return program.joined(row); });
    column<uint32_t>(fields, "site", &Action::site);
    array<uint32_t>(fields, "critical", [&](auto put) {
      for (ActionId row : criticalPath(times))
        if (uint32_t at = pageRow(row.value); at != hiddenCause)
          put(at);
    });
    array<uint32_t>(fields, "sites", [&](auto put) {
      for (const Site &site : program.sites()) {
        put(site.file);
        put(site.line);
        put(site.column);
        put(site.caller.value);
      }
    });
  }

  uint32_t pageCause(ActionId row) const {
    uint32_t cause = times.causes[row.value];
    return cause == Simulation::none ? noCause : pageRow(cause);
  }
  /// Where the page has a row.
  uint32_t pageRow(uint32_t row) const {
    // Most pages have all ranks.
    if (picture.ranks.size() == program.ranksBegun())
      return row;
    RankId rank = program.rankOf(ActionId(row));
    auto shown = picture.indexOf(rank);
    return shown ? rowStarts[*shown] + row - program.begin(rank).value
                 : hiddenCause;
  }

  /// The order of nodes of each row that begins a box, and the orders.
  void nodes(JsonFields &fields) {
    fields.values("lanes", program.nodes().lanes);
    fields.values("names", program.nodes().names);
    fields.values("labels", picture.nodeLabels);
    auto numbers = [&](StringRef name, ArrayRef<uint32_t> values) {
      array<uint32_t>(fields, name,
                      [&](auto put) { llvm::for_each(values, put); });
    };
    numbers("order", page.nodes.orderOfRow);
    numbers("begin", page.nodes.begins);
    auto column = [&]<class T>(StringRef name, T PageNode::*of) {
      array<T>(fields, name, [&](auto put) {
        for (const PageNode &node : page.nodes.nodes)
          put(node.*of);
      });
    };
    column("member", &PageNode::member);
    column("kind", &PageNode::kind);
    column("lane", &PageNode::lane);
    column("name", &PageNode::name);
    column("layer", &PageNode::layer);
    column("start", &PageNode::start);
    column("end", &PageNode::end);
  }

  /// For each rank the times at which what it holds changes, in units, and what
  /// it holds from then on.
  void memory(JsonFields &fields) {
    MemoryCurve curve(program, times);
    fields.key("memory");
    writer.list(picture.ranks, [&](RankId rank) {
      std::vector<double> at, held;
      curve.walk(rank, [&](const MemoryStep &step) {
        double time = double(step.at) / cost::unit;
        if (at.empty() || at.back() != time) {
          at.push_back(time);
          held.push_back(0);
        }
        held.back() = double(step.memory) / amount::unit;
        return true;
      });
      writer.put('\n');
      writer.object([&](JsonFields &ofRank) {
        array<double>(ofRank, "at", [&](auto put) { llvm::for_each(at, put); });
        array<double>(ofRank, "held",
                      [&](auto put) { llvm::for_each(held, put); });
        if (auto limit = curve.model().limitOf(rank))
          ofRank.raw("limit", amount::format(*limit));
      });
    });
  }

  /// The names of the files, and the lines of text that actions come from.
  void files(JsonFields &fields) {
    fields.list("files", program.files(),
                [&](const SiteFile &file) { writer.json(file.name); });
    std::set<std::pair<uint32_t, uint32_t>> seen;
    StringRef before = "[";
    fields.key("source");
    writer.put('[');
    for (uint32_t i = 1; i < program.sites().size(); ++i) {
      const Site &site = program.sites()[i];
      // The line of a cell is a whole rank.
      if (program.files()[site.file].own ||
          !seen.insert({site.file, site.line}).second)
        continue;
      Location place = locationOf(program, SiteId(i), sources);
      if (!place.range.valid())
        continue;
      writer.put(std::exchange(before, ",["), site.file, ',', site.line, ',');
      writer.json(sources.lineText(place.range.begin).trim().take_front(200));
      writer.put(']');
    }
    writer.put(']');
  }
};

} // namespace

static StringRef viewerFile(StringRef name) {
  return findBy(viewerFiles(), name, &EmbeddedFile::name)->text;
}

static void writePage(const std::deque<PagePicture> &pages,
                      SourceManager &sources, raw_ostream &out) {
  Writer writer(out, /*inMarkup=*/true);
  std::string title = escapedMarkup(pages.front().title);
  // The policy keeps whatever the names are from fetching anything.
  writer.put("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\""
             "default-src 'none'; script-src 'unsafe-inline'; style-src "
             "'unsafe-inline'\">\n<title>",
             title, "</title>\n<style>\n", viewerFile("viewer.css"),
             "</style>\n", viewerFile("viewer.html"));
  for (const PagePicture &page : pages) {
    writer.put("<script type=\"application/json\">");
    RunWriter{page, sources, writer}.write();
    writer.put("</script>\n");
  }
  writer.put("<script>\n", viewerFile("viewer.js"), "</script>\n</html>\n");
}

void ppcc::emitPage(ArrayRef<PageRun> runs, raw_ostream &out,
                    EmitContext &context) {
  std::deque<PagePicture> pages;
  size_t rows = 0, nodes = 0;
  for (const PageRun &run : runs) {
    EmitContext ofRun = context;
    ofRun.options.transport = run.transport;
    auto picture = Picture::make(run.program, ofRun);
    if (!picture)
      return;
    for (RankId rank : picture->ranks)
      rows += run.program.size(rank);
    if (rows > maxPageRows)
      return context.diags.refuse<diag::PictureTooLarge>(
          Location(run.program.name()), rows, "actions and messages",
          maxPageRows, "a page");
    nodes +=
        pages.emplace_back(std::move(*picture), run.remark).nodes.nodes.size();
    if (nodes > maxPageRows)
      return context.diags.refuse<diag::PictureTooLarge>(
          Location(run.program.name()), nodes, "nodes", maxPageRows, "a page");
  }
  writePage(pages, context.sources, out);
}

void ppcc::emitHtml(const Program &program, raw_ostream &out,
                    EmitContext &context) {
  return emitPage(PageRun{program, context.options.transport}, out, context);
}
