// The Python module kernels._native. Batches are checked by step_input.cpp, other shapes and types by
// kernels/native_program.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "decode_run.h"
#include "executor.h"
#include "isa.h"
#include "step_input.h"

namespace nb = nanobind;
void bind_encoder(nb::module_& m);
void bind_guarded(nb::module_& m);
void bind_sampling(nb::module_& m);
using namespace nb::literals;

namespace {

template <class T>
using Array1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using FloatRows = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

constexpr int kOpColumns = 18;
constexpr int kKvColumns = 9;

int at(const Array2<int64_t>& table, size_t row, int column) { return static_cast<int>(table(row, column)); }

pk::Op decode_op(const Array2<int64_t>& ints, const Array2<double>& reals, size_t i) {
    pk::Op op{static_cast<pk::OpKind>(at(ints, i, 0))};
    op.out = at(ints, i, 1);
    op.src = at(ints, i, 2);
    op.weight = at(ints, i, 3);
    op.extra = at(ints, i, 4);
    op.index = at(ints, i, 5);
    op.heads = at(ints, i, 6);
    op.head_dim = at(ints, i, 7);
    op.flag = at(ints, i, 8);
    for (int j = 0; j < 9; j++) op.more[j] = at(ints, i, 9 + j);
    op.value = static_cast<float>(reals(i, 0));
    op.scale = static_cast<float>(reals(i, 1));
    op.cap = static_cast<float>(reals(i, 2));
    return op;
}

pk::KvLayer decode_layer(const Array2<int64_t>& table, size_t i, int page_tokens) {
    const auto plane = [&](int offset, int scales, int dim, int type) {
        return pk::KvPlane{static_cast<size_t>(table(i, offset)), static_cast<size_t>(table(i, scales)),
                           at(table, i, type), at(table, i, 4), at(table, i, dim), page_tokens, at(table, i, dim)};
    };
    return pk::KvLayer{plane(0, 1, 5, 7), plane(2, 3, 6, 8)};
}

pk::TensorView decode_tensor(const Array2<uint64_t>& table, size_t i) {
    return pk::TensorView{reinterpret_cast<const uint8_t*>(static_cast<uintptr_t>(table(i, 0))),
                          static_cast<int32_t>(table(i, 1)), static_cast<int32_t>(table(i, 2)),
                          static_cast<int32_t>(table(i, 3)), static_cast<size_t>(table(i, 4))};
}

using RopeTuple = std::tuple<int, int, double, std::vector<double>>;

class NativeExecutor {
public:
    NativeExecutor(std::vector<int> widths, Array2<uint64_t> tensors, Array2<int64_t> layers, nb::list ropes,
                   Array2<int64_t> ops, Array2<double> reals, int page_tokens, int vocabulary, int channels,
                   int threads, const std::string& isa)
        : executor_(decode_program(std::move(widths), tensors, layers, ropes, ops, reals, page_tokens, vocabulary, channels),
                    threads, pk::find_level(isa)) {}

    // Outcome of each: 0 stopped, 1 completed, 2 parked. A parked step's arrays must live until resume or drop.
    int step(nb::handle tokens, nb::handle roles, nb::handle seq_rows, nb::handle seq_start, nb::handle pages,
             nb::handle seq_write, nb::handle out_rows, nb::handle cancel, nb::handle logits, nb::handle hidden, bool parkable) {
        using pk::ArrayView;
        const ArrayView tokens_view(tokens, "tokens", ArrayView::kInt, {-1});
        const ArrayView start_view(seq_start, "seq_start", ArrayView::kInt, {-1});
        const Py_ssize_t rows = tokens_view.length(0), sequences = start_view.length(0);
        const ArrayView roles_view(roles, "roles", ArrayView::kByte, {rows});
        const ArrayView rows_view(seq_rows, "seq_rows", ArrayView::kInt, {sequences + 1});
        const ArrayView pages_view(pages, "pages", ArrayView::kWord, {sequences, -1});
        const ArrayView write_view(seq_write, "seq_write", ArrayView::kByte, {sequences});
        const ArrayView out_view(out_rows, "out_rows", ArrayView::kInt, {-1});
        pk::BatchView batch;
        batch.tokens = tokens_view.data<int32_t>();
        batch.roles = roles_view.data<uint8_t>();
        batch.rows = static_cast<int>(rows);
        batch.seq_rows = rows_view.data<int32_t>();
        batch.seq_start = start_view.data<int32_t>();
        batch.sequences = static_cast<int>(sequences);
        batch.pages = pages_view.data<uint64_t>();
        batch.max_pages = pages_view.length(1);
        batch.seq_write = write_view.data<uint8_t>();
        batch.out_rows = out_view.data<int32_t>();
        batch.outputs = out_view.length(0);
        return static_cast<int>(run(batch, cancel, logits, hidden, parkable));
    }

    int step_runs(nb::sequence runs, nb::handle cancel, nb::handle logits, nb::handle hidden, bool parkable) {
        arrays_.fill(runs);
        pk::BatchView batch;
        arrays_.show(batch);
        const pk::Outcome outcome = run(batch, cancel, logits, hidden, parkable);
        if (outcome == pk::Outcome::Parked) std::swap(arrays_, parked_arrays_);  // which moves none of their memory
        return static_cast<int>(outcome);
    }

    // Several steps of runs of one token and its draft, see decode_run.h. Returns what each of them drew, what became of
    // matches with earlier text, the milliseconds and rows of each step, and whether nothing was found behind the last.
    nb::tuple decode(nb::sequence runs, nb::sequence draws, nb::handle cancel, int rows, double milliseconds) {
        arrays_.fill(runs);
        pk::BatchView batch;
        arrays_.show(batch);
        pk::check_batch(batch, executor_.program());
        std::deque<pk::Drawing> drawings;
        for (nb::handle draw : draws) drawings.emplace_back(draw);
        if (batch.outputs != batch.rows || drawings.size() != nb::len(runs))
            throw std::invalid_argument("a run of steps begins with wanted rows of each sequence, and a draw for it");
        for (int s = 0; s < batch.sequences; s++) begin(drawings[s], batch, s);
        const pk::ArrayView flag(cancel, "cancel", pk::ArrayView::kByte, {1});
        batch.cancel = flag.data<uint8_t>();
        batch.on_park = pk::OnPark::Finish;
        run_outputs_.reserve(executor_.program(), std::max(rows, batch.rows), batch);
        pk::RunTimes times;
        {
            nb::gil_scoped_release release;
            times = pk::decode(executor_, arrays_, batch, drawings, pk::RunLimits{rows, milliseconds});
        }
        return results_of(drawings, times);
    }

    int resume(double milliseconds) {
        nb::gil_scoped_release release;
        return static_cast<int>(executor_.resume(milliseconds));
    }

    // Of a parked step that came as runs.
    void move_pages(nb::sequence tables) { parked_arrays_.place(tables); }

    void drop() { executor_.drop(); }

    void head(FloatRows hidden, FloatRows logits) {
        pk::BatchView batch;
        batch.outputs = static_cast<int>(hidden.shape(0));
        batch.hidden = hidden.data();
        batch.logits = logits.data();
        nb::gil_scoped_release release;
        executor_.head(batch);
    }

    void load_buffer(int index, Array2<float> values) {
        executor_.reserve(static_cast<int>(values.shape(0)));
        for (size_t r = 0; r < values.shape(0); r++)
            std::copy_n(values.data() + r * values.shape(1), values.shape(1), executor_.buffer(index).row(r));
    }

    void read_buffer(int index, FloatRows out) {
        for (size_t r = 0; r < out.shape(0); r++)
            std::copy_n(executor_.buffer(index).row(r), out.shape(1), out.data() + r * out.shape(1));
    }

    void reserve(int rows) { executor_.reserve(rows); }
    void fill(float value) { executor_.fill(value); }

private:
    // The arrays that a batch is given, for as long as this lives.
    class Results {
    public:
        Results(pk::BatchView& batch, nb::handle cancel, nb::handle logits, nb::handle hidden)
            : cancel_(cancel, "cancel", pk::ArrayView::kByte, {1}),
              logits_(logits, "logits", pk::ArrayView::kFloat, {batch.outputs, -1}),
              hidden_(hidden, "hidden", pk::ArrayView::kFloat, {batch.outputs, -1}) {
            batch.cancel = cancel_.data<uint8_t>();
            batch.logits = logits_.data<float>();
            batch.hidden = hidden_.data<float>();
        }

    private:
        const pk::ArrayView cancel_, logits_, hidden_;
    };

    pk::Outcome run(pk::BatchView& batch, nb::handle cancel, nb::handle logits, nb::handle hidden, bool parkable) {
        pk::check_batch(batch, executor_.program());
        const Results results(batch, cancel, logits, hidden);
        batch.on_park = parkable ? pk::OnPark::Park : pk::OnPark::Stop;
        nb::gil_scoped_release release;
        return executor_.step(batch);
    }

    void begin(pk::Drawing& drawing, const pk::BatchView& batch, int s) const {
        std::vector<int32_t> draft = arrays_.draft(s);
        if (draft.size() >= drawing.most()) throw std::invalid_argument("a run of steps begins with more rows than may be drawn");
        pk::check_room(batch, executor_.program(), s, static_cast<int64_t>(drawing.most()));
        drawing.begin(std::move(draft));
    }

    static nb::tuple results_of(const std::deque<pk::Drawing>& drawings, const pk::RunTimes& times) {
        nb::list tokens, tries, milliseconds, rows;
        for (const pk::Drawing& drawing : drawings) {
            nb::list drawn, tried;
            for (size_t i = 0; i < drawing.drawn(); i++) drawn.append(drawing.at(i));
            for (const pk::Try& one : drawing.tries()) tried.append(nb::make_tuple(one.length, one.drafted, one.accepted));
            tokens.append(drawn);
            tries.append(tried);
        }
        for (double time : times.milliseconds) milliseconds.append(time);
        for (int count : times.rows) rows.append(count);
        return nb::make_tuple(tokens, tries, milliseconds, rows, times.looked);
    }

    static pk::ProgramData decode_program(std::vector<int> widths, const Array2<uint64_t>& tensors,
                                  const Array2<int64_t>& layers, const nb::list& ropes, const Array2<int64_t>& ops,
                                  const Array2<double>& reals, int page_tokens, int vocabulary, int channels) {
        if (ops.shape(1) != kOpColumns || layers.shape(1) != kKvColumns || reals.shape(0) != ops.shape(0))
            throw std::invalid_argument("program tables have a wrong number of columns");
        pk::ProgramData data;
        data.widths = std::move(widths);
        data.page_tokens = page_tokens;
        data.vocabulary = vocabulary;
        data.channels = channels;
        for (size_t i = 0; i < tensors.shape(0); i++) data.tensors.push_back(decode_tensor(tensors, i));
        for (size_t i = 0; i < layers.shape(0); i++) data.kv_layers.push_back(decode_layer(layers, i, page_tokens));
        for (size_t i = 0; i < ops.shape(0); i++) data.ops.push_back(decode_op(ops, reals, i));
        for (nb::handle rope : ropes) {
            pk::RopeTable table;
            table.dims = nb::cast<int>(rope[0]);
            table.kind = nb::cast<int>(rope[1]);
            table.magnitude = nb::cast<double>(rope[2]);
            table.inv_freq = nb::cast<std::vector<double>>(rope[3]);
            data.ropes.push_back(std::move(table));
        }
        return data;
    }

    pk::Executor executor_;
    pk::StepArrays arrays_, parked_arrays_;
    pk::RunOutputs run_outputs_;
};

// For each part, which consists of the next `counts[part]` pieces: 1 if all of them have their checksums.
nb::bytes parts_intact(Array1<uint64_t> addresses, Array1<int64_t> lengths, Array1<int64_t> counts, nb::bytes sums,
                       const std::string& level) {
    const pk::KernelTable* table = pk::find_level(level);
    const uint8_t* expected = reinterpret_cast<const uint8_t*>(sums.c_str());
    std::string intact(counts.shape(0), '\1');
    {
        nb::gil_scoped_release release;
        size_t piece = 0;
        uint8_t found[16];
        for (size_t part = 0; part < counts.shape(0); part++) {
            for (const size_t stop = piece + static_cast<size_t>(counts(part)); piece < stop; piece++) {
                const uint8_t* data = reinterpret_cast<const uint8_t*>(static_cast<uintptr_t>(addresses(piece)));
                table->checksum(data, static_cast<size_t>(lengths(piece)), found);
                if (!std::equal(found, found + 16, expected + 16 * piece)) intact[part] = 0;
            }
        }
    }
    return nb::bytes(intact.data(), intact.size());
}

std::vector<std::string> level_names() {
    std::vector<std::string> names;
    for (const pk::KernelTable* level : pk::available_levels()) names.emplace_back(level->name);
    return names;
}

}  // namespace

NB_MODULE(_native, m) {
    m.def("levels", &level_names);
    m.def("parts_intact", &parts_intact);
    bind_encoder(m);
    bind_guarded(m);
    bind_sampling(m);
    nb::class_<NativeExecutor>(m, "Executor")
        .def(nb::init<std::vector<int>, Array2<uint64_t>, Array2<int64_t>, nb::list, Array2<int64_t>, Array2<double>,
                      int, int, int, int, const std::string&>())
        .def("step", &NativeExecutor::step)
        .def("step_runs", &NativeExecutor::step_runs)
        .def("decode", &NativeExecutor::decode)
        .def("resume", &NativeExecutor::resume)
        .def("move_pages", &NativeExecutor::move_pages)
        .def("drop", &NativeExecutor::drop)
        .def("head", &NativeExecutor::head)
        .def("load_buffer", &NativeExecutor::load_buffer)
        .def("read_buffer", &NativeExecutor::read_buffer)
        .def("reserve", &NativeExecutor::reserve)
        .def("fill", &NativeExecutor::fill);
}
